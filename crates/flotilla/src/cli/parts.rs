//! The parts of a message from the command line, in the order they were written.

use super::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::wire::{AnyValue, Base64, Json};
use std::io::Read as _;
use std::path::Path;

/// One flag as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    Words(String),
    Text(String),
    File(String),
    Data(String),
    MediaType(String),
}

/// All part flags, in order.
#[derive(Debug, Clone, Default)]
pub struct Parts(Vec<Given>);

type Make = fn(String) -> Given;
const FLAGS: [(&str, Make); 5] = [
    ("words", Given::Words),
    ("text", Given::Text),
    ("file", Given::File),
    ("data", Given::Data),
    ("media-type", Given::MediaType),
];

impl clap::Args for Parts {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            let arg = Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append);
            arg.help_heading("What to say (in this order)").allow_hyphen_values(name != "media-type")
        };
        command
            .arg(Arg::new("words").value_name("TEXT").help("A text; - reads it from standard input"))
            .arg(flag("text", "STRING", "Add a text"))
            .arg(flag(
                "file",
                "PATH|URL",
                "Add a file: a path is sent whole, a URL as a reference, - is standard input",
            ))
            .arg(flag("data", "PATH|-", "Add JSON from a file, or from standard input"))
            .arg(flag("media-type", "TYPE", "Media type of the part before it [default: guessed from its name]"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Parts {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given: Vec<(usize, Given)> = Vec::new();
        for (name, make) in FLAGS {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            given.extend(places.zip(values).map(|(place, value)| (place, make(value.clone()))));
        }
        given.sort_by_key(|(place, _)| *place);
        Ok(Self(given.into_iter().map(|(_, given)| given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Parts {
    /// Reads files and standard input.
    pub fn read(&self) -> Result<Vec<Part>, Failure> {
        let mut parts: Vec<Part> = Vec::new();
        let mut stdin_is_used = false;
        let mut is_typed = false;
        for given in &self.0 {
            let uses = matches!(given, Given::Words(t) | Given::File(t) | Given::Data(t) if t == "-");
            if uses && std::mem::replace(&mut stdin_is_used, true) {
                let failure = Failure::usage("standard input can be read for one part only");
                return Err(failure.hint("put the others into files, and name those"));
            }
            is_typed = match given {
                Given::MediaType(kind) if is_typed => {
                    let text = format!("--media-type {kind}: the part before it has one already");
                    return Err(Failure::usage(text).hint("write it after its own part, once"));
                }
                Given::MediaType(_) => true,
                _ => false,
            };
            match given {
                Given::Words(dash) if dash == "-" => parts.push(Part::text(text_from_stdin()?)),
                Given::Words(text) | Given::Text(text) => parts.push(Part::text(text)),
                Given::File(path) => parts.push(file(path)?),
                Given::Data(path) => parts.push(data(path)?),
                Given::MediaType(kind) => match parts.last_mut() {
                    Some(part) => kind.clone_into(&mut part.media_type),
                    None => {
                        let text = format!("--media-type {kind} has no part before it");
                        return Err(
                            Failure::usage(text).hint("write it after its part: --file a.bin --media-type TYPE")
                        );
                    }
                },
            }
        }
        if parts.is_empty() {
            let hint = "flotilla send \"Hello\", or --text, --file, --data; - reads standard input";
            return Err(Failure::usage("there is nothing to send").hint(hint));
        }
        Ok(parts)
    }
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    Ok(bytes)
}

fn text_from_stdin() -> Result<String, Failure> {
    let not_text = |_| Failure::usage("standard input is not text").hint("send it as a file: --file -");
    let text = String::from_utf8(stdin()?).map_err(not_text)?;
    Ok(text.strip_suffix('\n').map_or(text.clone(), str::to_owned))
}

fn read(flag: &str, path: &str) -> Result<Vec<u8>, Failure> {
    if path == "-" {
        return stdin();
    }
    std::fs::read(path).map_err(|error| {
        let failure = Failure::usage(format!("{flag} {path}: {error}"));
        if flag == "--data" && path.trim_start().starts_with(['{', '[']) {
            return failure
                .hint(r#"JSON itself comes over standard input: echo '{"key":"value"}' | flotilla send --data -"#);
        }
        failure.hint(format!("{flag} takes the path of a file that can be read, or - for standard input"))
    })
}

/// What lies on this machine is sent along; what has an address is left for the agent to fetch.
fn file(path: &str) -> Result<Part, Failure> {
    let name = path.split(['?', '#']).next().unwrap_or(path).rsplit('/').next().unwrap_or_default();
    let filename = if path == "-" { String::new() } else { name.to_owned() };
    let media_type = media_type(name).to_owned();
    if path.starts_with("http://") || path.starts_with("https://") {
        return Ok(Part { url: Some(path.to_owned()), filename, media_type, ..Part::default() });
    }
    let raw = Some(Base64::encode(&read("--file", path)?));
    Ok(Part { raw, filename, media_type, ..Part::default() })
}

fn data(path: &str) -> Result<Part, Failure> {
    let wrong = |problem: String| {
        let failure = Failure::usage(format!("--data {path}: {problem}"));
        failure.hint("--data takes a file with JSON in it; send any other with --file, and a text with --text")
    };
    let text = String::from_utf8(read("--data", path)?).map_err(|_| wrong("it is not text".into()))?;
    let json = Json::new(text.trim().to_owned()).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    Ok(Part { data: AnyValue(Some(json)), media_type: "application/json".into(), ..Part::default() })
}

/// A guess by the name's ending, where the caller gave no type.
fn media_type(name: &str) -> &'static str {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}
