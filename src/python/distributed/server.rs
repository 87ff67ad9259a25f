//! The store's server: one thread per connection.

use super::jobs::Jobs;
use super::table::{self, Bytes, Patience, Table, WaitError};
use super::wire::{self, Code, HELLO, Message, lock};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Enough for a thousand ranks.
const MOST_CONNECTIONS: usize = 16 << 10;
const STACK: usize = 128 << 10;
/// A new connection must send its greeting within this time.
const GREETING: Duration = Duration::from_secs(5);
/// A message that has begun must continue within this time.
const STALLED: Duration = Duration::from_secs(30);
/// The longest wait that a client can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub struct Server {
    #[cfg(unix)]
    listening: std::os::fd::RawFd,
    address: SocketAddr,
    table: Table,
    jobs: Jobs,
    open: Mutex<HashMap<u64, Arc<TcpStream>>>,
    is_stopped: AtomicBool,
}

/// A listening server, until stopped.
pub struct Running {
    pub server: Arc<Server>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// Finds the address to listen on such that the host's name leads here: the name's own address if that is
/// an interface of this machine, otherwise all interfaces. (/etc/hosts may map this machine's name to a
/// loopback address that other machines do not use; a service's address belongs to no machine.)
fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let is_plain = host == "localhost" || host.parse::<IpAddr>().is_ok();
    let mut first = None;
    for address in addresses {
        let any = match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let tried = if address.ip().is_loopback() && !is_plain {
            TcpListener::bind((any, port))
        } else {
            match TcpListener::bind(address) {
                Err(error) if error.kind() == ErrorKind::AddrNotAvailable => TcpListener::bind((any, port)),
                tried => tried,
            }
        };
        match tried {
            Ok(listener) => return Ok(listener),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()))
}

impl Running {
    pub fn start(host: &str, port: u16) -> io::Result<Running> {
        Running::listen(bind(host, port)?)
    }
    pub fn listen(listener: TcpListener) -> io::Result<Running> {
        listener.set_nonblocking(false)?;
        let server = Arc::new(Server {
            #[cfg(unix)]
            listening: std::os::fd::AsRawFd::as_raw_fd(&listener),
            address: listener.local_addr()?,
            table: Table::default(),
            jobs: Jobs::default(),
            open: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accepting = {
            let server = server.clone();
            Builder::new()
                .name("store".to_owned())
                .stack_size(STACK)
                .spawn(move || server.accept(&listener))?
        };
        Ok(Running { server, accepting: Mutex::new(Some(accepting)) })
    }
    /// Closes all connections and the port.
    pub fn stop(&self) {
        let Some(accepting) = lock(&self.accepting).take() else { return };
        let server = &self.server;
        server.is_stopped.store(true, Ordering::Release);
        server.table.close();
        // The accepting thread notices the end at the next connection, so make one.
        let woken = TcpStream::connect_timeout(&server.reached_at(), Duration::from_secs(1));
        server.hang_up();
        if woken.is_ok() {
            let _ = accepting.join();
        }
        server.hang_up();
    }
}

impl Server {
    pub fn port(&self) -> u16 {
        self.address.port()
    }
    /// Returns the address under which this machine itself reaches the server.
    pub fn reached_at(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address
    }
    pub fn count_ranks(&self) -> usize {
        self.jobs.count_ranks()
    }
    /// Returns the sockets that a forked child has copies of, except those that another thread was just
    /// changing.
    #[cfg(unix)]
    pub fn descriptors(&self) -> Vec<std::os::fd::RawFd> {
        use std::os::fd::AsRawFd;
        if self.is_stopped() {
            return Vec::new();
        }
        let mut descriptors = vec![self.listening];
        if let Ok(open) = self.open.try_lock() {
            descriptors.extend(open.values().map(|stream| stream.as_raw_fd()));
        }
        descriptors
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
    fn hang_up(&self) {
        for stream in lock(&self.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn accept(self: &Arc<Server>, listener: &TcpListener) {
        for id in 0.. {
            let accepted = listener.accept();
            if self.is_stopped() {
                return;
            }
            let served = accepted.and_then(|(stream, _)| {
                let stream = Arc::new(stream);
                let mut open = lock(&self.open);
                if open.len() >= MOST_CONNECTIONS {
                    return Ok(());
                }
                open.insert(id, stream.clone());
                drop(open);
                let connection = Connection { server: self.clone(), stream, id };
                // If no thread can be started, dropping the connection closes it.
                Builder::new().stack_size(STACK).spawn(move || connection.serve()).map(drop)
            });
            if served.is_err() {
                // No file descriptor or thread is left; some may become free soon.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Answers a request.
    fn answer(&self, request: &Message, is_gone: &dyn Fn() -> bool) -> io::Result<(Code, Vec<Bytes>)> {
        let parts = &request.parts;
        let part =
            |at: usize| parts.get(at).map(Vec::as_slice).ok_or_else(|| wire::malformed("a part is missing"));
        let number = |number: i64| (Code::Done, vec![Bytes::from(number.to_le_bytes())]);
        let done = || (Code::Done, Vec::new());
        let refused = |text: String| (Code::Refused, vec![Bytes::from(text.into_bytes())]);
        // The first part of a request that waits is its timeout.
        let timed = matches!(request.code, Code::Get | Code::Wait | Code::MultiGet | Code::Pop);
        let first = usize::from(timed);
        let (keys, values): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = match request.code {
            Code::Wait | Code::Check | Code::MultiGet => (parts.iter().skip(first).collect(), Vec::new()),
            Code::MultiSet => (parts.iter().step_by(2).collect(), parts.iter().skip(1).step_by(2).collect()),
            _ => (parts.iter().skip(first).take(1).collect(), parts.iter().skip(first + 1).collect()),
        };
        let checked = keys.into_iter().try_for_each(|key| table::check_key(key));
        if let Err(text) =
            checked.and_then(|()| values.into_iter().try_for_each(|value| table::check_value(value)))
        {
            return Ok(refused(text));
        }
        let wait = |keys: &[Vec<u8>]| {
            let time = Duration::from_millis(request.number(0)?.max(0) as u64).min(LONGEST_WAIT);
            let patience = Patience { deadline: Instant::now() + time, is_gone };
            match self.table.wait(keys, &patience) {
                Ok(()) => Ok(true),
                Err(WaitError::TimedOut) => Ok(false),
                Err(WaitError::Gone) => Err(io::Error::from(ErrorKind::ConnectionAborted)),
            }
        };
        let table = &self.table;
        Ok(match request.code {
            Code::Set => {
                table.set(part(0)?, part(1)?);
                done()
            }
            Code::Get | Code::MultiGet => {
                let keys = &parts[first.min(parts.len())..];
                loop {
                    if !wait(keys)? {
                        break (Code::TimedOut, Vec::new());
                    }
                    let values: Option<Vec<Bytes>> = keys.iter().map(|key| table.get(key)).collect();
                    if let Some(values) = values {
                        break (Code::Done, values);
                    }
                    if let Some(key) = keys.iter().find(|key| table.queue_length(key) > 0) {
                        break refused(format!("'{}' is a queue", String::from_utf8_lossy(key)));
                    }
                }
            }
            Code::Wait => {
                if wait(&parts[first.min(parts.len())..])? {
                    done()
                } else {
                    (Code::TimedOut, Vec::new())
                }
            }
            Code::Add => table.add(part(0)?, request.number(1)?).map_or_else(refused, number),
            Code::CompareSet => (Code::Done, vec![table.compare_set(part(0)?, part(1)?, part(2)?)]),
            Code::Delete => number(table.delete(part(0)?).into()),
            Code::CountKeys => number(table.count_keys() as i64),
            Code::ListKeys => (Code::Done, table.keys()),
            Code::Append => table.append(part(0)?, part(1)?).map_or_else(refused, |()| done()),
            Code::Check => number(table.has_all(parts).into()),
            Code::MultiSet => {
                for pair in parts.chunks_exact(2) {
                    table.set(&pair[0], &pair[1]);
                }
                done()
            }
            Code::Push => {
                table.push(part(0)?, part(1)?);
                done()
            }
            Code::Pop => loop {
                if let Some(value) = table.pop(part(1)?) {
                    break (Code::Done, vec![value]);
                }
                if request.number(0)? < 0 {
                    break (Code::Empty, Vec::new());
                }
                if !wait(&parts[1..2])? {
                    break (Code::TimedOut, Vec::new());
                }
            },
            Code::QueueLength => number(table.queue_length(part(0)?) as i64),
            _ => return Err(wire::malformed("no request")),
        })
    }
}

struct Connection {
    server: Arc<Server>,
    stream: Arc<TcpStream>,
    id: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.server.open).remove(&self.id);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Connection {
    fn serve(self) {
        // The client notices how a connection ends; nobody else needs to know.
        let _ = self.converse();
    }
    fn converse(&self) -> io::Result<()> {
        let stream = &*self.stream;
        wire::set_patience(stream, Duration::from_secs(1))?;
        let start = Instant::now();
        let mut greeting =
            || if start.elapsed() < GREETING { Ok(()) } else { Err(io::Error::from(ErrorKind::TimedOut)) };
        if wire::receive_bytes(stream, HELLO.len(), &mut greeting)? != HELLO {
            return Err(wire::malformed("no hello"));
        }
        wire::send_bytes(stream, HELLO, &mut greeting)?;
        loop {
            let mut silent = 0;
            let request = wire::receive(stream, &mut |begun| {
                silent += u64::from(begun);
                if silent < STALLED.as_secs() { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
            })?;
            if request.code == Code::Join {
                self.server.jobs.serve(self.stream.clone(), &request, &|| self.server.is_stopped());
                return Ok(());
            }
            let (code, parts) = self.server.answer(&request, &|| self.is_gone())?;
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            let mut silent = 0;
            wire::send(stream, code, &parts, &mut || {
                silent += 1;
                if silent < STALLED.as_secs() { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
            })?;
        }
    }
    /// Returns true if the client has hung up. (A client that waits sends nothing, so readable data means
    /// the end.)
    fn is_gone(&self) -> bool {
        if self.server.is_stopped() || self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let blocking = self.stream.set_nonblocking(false);
        blocking.is_err() || !matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}
