//! What a status, a message or an artifact holds: how it is checked, and how it is made.

use super::config::FileConfig;
use super::place::{Place, ScriptError};
use super::template::{Scene, Template, Tree};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::{AnyValue, Base64, Json, Object};
use flotilla_protocol::work::Contents;
use serde_json::{Map, Value};

/// The fields that statuses, messages and artifacts share.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub text: Option<&'a String>,
    pub file: Option<&'a FileConfig>,
    pub data: Option<&'a Value>,
    pub parts: Option<&'a Vec<Value>>,
    pub blocks: Option<&'a Vec<Value>>,
}

#[derive(Debug)]
pub(super) enum Content {
    Parts(Vec<PartPlan>),
    Blocks(Vec<Tree>),
}

#[derive(Debug)]
pub(super) enum PartPlan {
    Text(Template),
    File {
        body: Body,
        name: Template,
        media_type: Template,
    },
    Data(Tree),
    /// A part as A2A writes it.
    Written(Tree),
}

#[derive(Debug)]
pub(super) enum Body {
    Text(Template),
    Bytes(Base64),
    Url(Template),
}

impl Content {
    /// Nothing when no field is given.
    pub fn compile(fields: &Fields<'_>, place: &Place) -> Result<Option<Self>, ScriptError> {
        let mut parts = Vec::new();
        if let Some(text) = fields.text {
            parts.push(PartPlan::Text(place.field("text").template(text)?));
        }
        if let Some(config) = fields.file {
            parts.push(file(config, &place.field("file"))?);
        }
        if let Some(data) = fields.data {
            parts.push(PartPlan::Data(place.field("data").tree(data)?));
        }
        for (i, part) in fields.parts.into_iter().flatten().enumerate() {
            let place = place.field("parts").index(i);
            part_from(part).map_err(|problem| place.error(problem))?;
            parts.push(PartPlan::Written(place.tree(part)?));
        }
        match fields.blocks {
            Some(_) if !parts.is_empty() => {
                Err(place.error("takes `blocks` alone, or any of `text`, `file`, `data` and `parts`"))
            }
            Some(blocks) => Ok(Some(Self::Blocks(block_trees(blocks, &place.field("blocks"))?))),
            None if parts.is_empty() => Ok(None),
            None => Ok(Some(Self::Parts(parts))),
        }
    }

    pub fn text(text: Template) -> Self {
        Self::Parts(vec![PartPlan::Text(text)])
    }

    pub fn make(&self, scene: Scene<'_>) -> Result<Contents, String> {
        match self {
            Self::Parts(plans) => {
                Ok(Contents::Parts(plans.iter().map(|plan| plan.make(scene)).collect::<Result<_, _>>()?))
            }
            Self::Blocks(trees) => Ok(Contents::Blocks(make_blocks(trees, scene)?)),
        }
    }
}

impl PartPlan {
    fn make(&self, scene: Scene<'_>) -> Result<Part, String> {
        match self {
            Self::Text(text) => Ok(Part::text(text.render(scene))),
            Self::Data(tree) => {
                let data = Json::of(&tree.render(scene)).map_err(|e| e.to_string())?;
                Ok(Part { data: AnyValue(Some(data)), ..Part::default() })
            }
            Self::Written(tree) => part_from(&tree.render(scene)),
            Self::File { body, name, media_type } => {
                let mut part =
                    Part { filename: name.render(scene), media_type: media_type.render(scene), ..Part::default() };
                match body {
                    Body::Text(text) => part.raw = Some(Base64::encode(text.render(scene).as_bytes())),
                    Body::Bytes(bytes) => part.raw = Some(bytes.clone()),
                    Body::Url(url) => part.url = Some(url.render(scene)),
                }
                Ok(part)
            }
        }
    }
}

fn file(config: &FileConfig, place: &Place) -> Result<PartPlan, ScriptError> {
    let body = match (&config.text, &config.base64, &config.url) {
        (Some(text), None, None) => Body::Text(place.field("text").template(text)?),
        (None, Some(base64), None) => {
            Body::Bytes(Base64::parse(base64).map_err(|problem| place.field("base64").error(problem))?)
        }
        (None, None, Some(url)) => Body::Url(place.field("url").template(url)?),
        _ => return Err(place.error("needs one of `text`, `base64` and `url`")),
    };
    let name = place.optional("name", config.name.as_ref())?;
    Ok(PartPlan::File { body, name, media_type: place.optional("media_type", config.media_type.as_ref())? })
}

fn part_from(value: &Value) -> Result<Part, String> {
    let part: Part = serde_json::from_str(&value.to_string()).map_err(|e| e.to_string())?;
    if let Some((name, _)) = part.unknown.first() {
        return Err(format!("`{name}` is no field of a part"));
    }
    let kinds = [part.text.is_some(), part.raw.is_some(), part.url.is_some(), part.data.0.is_some()];
    if kinds.iter().filter(|given| **given).count() != 1 {
        return Err("needs one of `text`, `raw`, `url` and `data`".into());
    }
    Ok(part)
}

/// Blocks of a known kind must have their members; what placeholders make of them shows when they are made.
pub(super) fn block_trees(blocks: &[Value], place: &Place) -> Result<Vec<Tree>, ScriptError> {
    if blocks.is_empty() {
        return Err(place.error("needs at least one block"));
    }
    let tree = |(i, value)| {
        let place = place.index(i);
        block_from(value).map_err(|problem| place.error(problem))?;
        place.tree(value)
    };
    blocks.iter().enumerate().map(tree).collect()
}

pub(super) fn make_blocks(trees: &[Tree], scene: Scene<'_>) -> Result<Vec<Block>, String> {
    trees.iter().map(|tree| block_from(&tree.render(scene))).collect()
}

pub(super) fn block_from(value: &Value) -> Result<Block, String> {
    Block::new(Json::of(value).map_err(|e| e.to_string())?)
}

pub(super) fn metadata(members: Option<&Map<String, Value>>, place: &Place) -> Result<Option<Tree>, ScriptError> {
    let place = place.field("metadata");
    members.map(|members| place.tree(&Value::Object(members.clone()))).transpose()
}

pub(super) fn make_object(tree: Option<&Tree>, scene: Scene<'_>) -> Result<Option<Object>, String> {
    tree.map(|tree| Object::of(&tree.render(scene)).map_err(|e| e.to_string())).transpose()
}
