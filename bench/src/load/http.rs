//! A minimal HTTP/1.1 client: one keep-alive connection, one request at a time, body read in pieces.

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How the end of the body being read is known.
enum Framing {
    Length(usize),
    /// Bytes left in the current chunk, the CRLF after it included.
    Chunked(usize),
    UntilClose,
    Ended,
}

pub struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
    framing: Framing,
    /// The server will close this connection after the answer.
    pub closing: bool,
}

impl Connection {
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        Ok(Connection { stream, buffer: BytesMut::with_capacity(16 * 1024), framing: Framing::Ended, closing: false })
    }

    /// Send a request and read the whole answer into `body`; returns its status.
    pub async fn call(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<u16> {
        body.clear();
        let status = self.send(request).await?;
        while self.piece(body).await? {}
        Ok(status)
    }

    /// Send a request and read the answer's head; the body is then read with [`Self::piece`].
    pub async fn send(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await.context("write")?;
        loop {
            if let Some(status) = self.parse_head()? {
                return Ok(status);
            }
            self.fill().await?;
        }
    }

    /// Append the next piece of the body to `out`; false once the body has ended.
    pub async fn piece(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        loop {
            match self.framing {
                Framing::Ended => return Ok(false),
                Framing::Length(0) => self.framing = Framing::Ended,
                Framing::Length(left) if !self.buffer.is_empty() => {
                    let size = self.take(left, out);
                    self.framing = Framing::Length(left - size);
                    return Ok(true);
                }
                Framing::Chunked(0) => {
                    if !self.chunk_head()? {
                        self.fill().await?;
                    }
                }
                // The last two bytes are the CRLF after the chunk's data.
                Framing::Chunked(left) if left <= 2 && self.buffer.len() >= left => {
                    self.buffer.advance(left);
                    self.framing = Framing::Chunked(0);
                }
                Framing::Chunked(left) if left > 2 && !self.buffer.is_empty() => {
                    let size = self.take(left - 2, out);
                    self.framing = Framing::Chunked(left - size);
                    return Ok(true);
                }
                Framing::UntilClose if !self.buffer.is_empty() => {
                    self.take(usize::MAX, out);
                    return Ok(true);
                }
                Framing::UntilClose => {
                    let size = self.stream.read_buf(&mut self.buffer).await;
                    if size.context("read")? == 0 {
                        self.framing = Framing::Ended;
                    }
                }
                Framing::Length(_) | Framing::Chunked(_) => self.fill().await?,
            }
        }
    }

    /// Move up to `limit` buffered bytes to `out`.
    fn take(&mut self, limit: usize, out: &mut Vec<u8>) -> usize {
        let size = limit.min(self.buffer.len());
        out.extend_from_slice(&self.buffer[..size]);
        self.buffer.advance(size);
        size
    }

    async fn fill(&mut self) -> Result<()> {
        let size = self.stream.read_buf(&mut self.buffer).await;
        ensure!(size.context("read")? > 0, "the server closed the connection");
        Ok(())
    }

    /// Read a chunk-size line, and for the last chunk the blank line after it; false if they have
    /// not all arrived. Trailers are not expected.
    fn chunk_head(&mut self) -> Result<bool> {
        let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") else {
            return Ok(false);
        };
        let line = std::str::from_utf8(&self.buffer[..end]).context("chunk size is not text")?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).with_context(|| format!("bad chunk size {line:?}"))?;
        if size > 0 {
            self.buffer.advance(end + 2);
            self.framing = Framing::Chunked(size + 2);
        } else if self.buffer.len() >= end + 4 {
            self.buffer.advance(end + 4);
            self.framing = Framing::Ended;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The status, once the whole head is buffered.
    fn parse_head(&mut self) -> Result<Option<u16>> {
        let mut headers = [httparse::EMPTY_HEADER; 48];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(size) = response.parse(&self.buffer).context("not an HTTP response")? else {
            return Ok(None);
        };
        let status = response.code.unwrap_or_default();
        self.framing = Framing::UntilClose;
        self.closing = false;
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default();
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = value.trim().parse().context("bad Content-Length")?;
                self.framing = Framing::Length(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                if !value.eq_ignore_ascii_case("chunked") {
                    bail!("unsupported Transfer-Encoding {value:?}");
                }
                self.framing = Framing::Chunked(0);
            } else if header.name.eq_ignore_ascii_case("connection") {
                self.closing = value.eq_ignore_ascii_case("close");
            }
        }
        if matches!(self.framing, Framing::UntilClose) {
            self.closing = true;
        }
        self.buffer.advance(size);
        Ok(Some(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that arrive one byte at a time, chunked and sized, on one connection.
    #[tokio::test]
    async fn reads_answers_split_anywhere() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            for answer in [
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
                "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone",
            ] {
                let mut request = [0; 4];
                stream.read_exact(&mut request).await.unwrap();
                for byte in answer.bytes() {
                    stream.write_all(&[byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let mut connection = Connection::open(&address).await.unwrap();
        let mut body = Vec::new();
        assert_eq!(connection.call(b"ping", &mut body).await.unwrap(), 200);
        assert_eq!(body, b"abc0123456789");
        assert!(!connection.closing);
        assert_eq!(connection.call(b"ping", &mut body).await.unwrap(), 404);
        assert_eq!(body, b"none");
        assert!(connection.closing);
        assert!(connection.call(b"ping", &mut body).await.is_err());
    }
}
