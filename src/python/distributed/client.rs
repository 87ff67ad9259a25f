//! A connection to the store, as those who ask see it.

use super::wire::{self, Code, HELLO, Idle, Message};
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a client that waits for the store does not look for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);
/// The store itself ends a wait; if it says nothing for so much longer, it is gone.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Place {
    pub host: String,
    pub port: u16,
}

pub struct Connection {
    pub stream: TcpStream,
}

fn timed_out(text: String) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, text)
}

impl Place {
    /// Connects as soon as there is a store, until the time is over.
    pub fn connect(&self, timeout: Duration, idle: Idle<'_>) -> io::Result<Connection> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            let error = match self.try_connect(timeout.saturating_sub(start.elapsed()), idle) {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            idle()?;
            if start.elapsed() >= timeout {
                return Err(timed_out(format!(
                    "The client socket has timed out after {}ms while trying to connect to ({}, {}). Last error: {error}",
                    timeout.as_millis(),
                    self.host,
                    self.port
                )));
            }
            std::thread::sleep(pause.min(timeout.saturating_sub(start.elapsed())));
            pause = (pause * 2).min(PATIENCE);
        }
    }

    fn try_connect(&self, timeout: Duration, idle: Idle<'_>) -> io::Result<Connection> {
        let start = Instant::now();
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            let stream = match TcpStream::connect_timeout(&address, PATIENCE * 2) {
                Ok(stream) => stream,
                Err(error) => {
                    last = error;
                    idle()?;
                    continue;
                }
            };
            wire::set_patience(&stream, PATIENCE)?;
            let mut waiting = || {
                idle()?;
                if start.elapsed() < timeout { Ok(()) } else { Err(timed_out("it says no hello".to_owned())) }
            };
            wire::give(&stream, HELLO, &mut waiting)?;
            if wire::take(&stream, HELLO.len(), &mut waiting)? == HELLO {
                return Ok(Connection { stream });
            }
            last = io::Error::new(ErrorKind::InvalidData, "what listens there is no store of this version");
        }
        Err(last)
    }
}

impl Connection {
    /// Sends a request and waits for its answer.
    pub fn ask(&self, code: Code, parts: &[&[u8]], timeout: Duration, idle: Idle<'_>) -> io::Result<Message> {
        let start = Instant::now();
        let mut waiting = || {
            idle()?;
            if start.elapsed() < timeout.saturating_add(GRACE) {
                return Ok(());
            }
            Err(timed_out(format!("The store has not answered for {}ms", start.elapsed().as_millis())))
        };
        wire::send(&self.stream, code, parts, &mut waiting).map_err(hung_up)?;
        wire::receive(&self.stream, &mut |_| waiting()).map_err(hung_up)
    }
}

/// The words for a store that ends while it is asked.
fn hung_up(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(
            ErrorKind::ConnectionReset,
            "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        ),
        _ => error,
    }
}
