//! A site that serves what a test puts at its paths: cards of every kind, and what is none.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is at a path.
#[derive(Debug, Clone)]
pub struct Page {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Page {
    pub fn json(body: impl ToString) -> Self {
        Self { status: 200, headers: vec![("content-type", "application/json".into())], body: body.to_string() }
    }

    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    pub fn redirect(to: &str) -> Self {
        Self { headers: vec![("location", to.to_owned())], ..Self::status(302) }
    }
}

type Site = Arc<dyn Fn(&str, &str) -> Page + Send + Sync>;

pub struct Pages {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pages {
    /// `site` is told a path and the site's own address.
    pub fn start(site: impl Fn(&str, &str) -> Page + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("an address");
        let (asked, site): (Arc<Mutex<Vec<String>>>, Site) = (Arc::default(), Arc::new(site));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (site, kept) = (Arc::clone(&site), Arc::clone(&kept));
                std::thread::spawn(move || serve(socket, address, &site, &kept));
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic while serving").clone()
    }
}

fn serve(socket: TcpStream, address: SocketAddr, site: &Site, kept: &Mutex<Vec<String>>) {
    let Ok(mut writer) = socket.try_clone() else { return };
    let mut reader = BufReader::new(socket);
    loop {
        let mut line = String::new();
        if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line.trim_end() != "" {
            line.clear();
            if reader.read_line(&mut line).is_err() {
                return;
            }
        }
        let page = site(&path, &format!("http://{address}"));
        kept.lock().expect("no panic while serving").push(path);
        let headers: String = page.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("HTTP/1.1 {} x\r\ncontent-length: {}\r\n{headers}\r\n", page.status, page.body.len());
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(page.body.as_bytes())).is_err() {
            return;
        }
    }
}
