//! Support for processes that train together, besides MPI: a key-value store, and a watch through which ranks
//! notice each other's death.

mod client;
mod jobs;
#[cfg(unix)]
mod pmi;
mod server;
mod table;
mod watch;
mod wire;

use client::{Connection, StoreAddress};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyConnectionError, PyIndexError, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use server::Running;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use watch::Link;
use wire::{Code, Message, lock};

/// The maximal number of idle connections.
const MOST_IDLE: usize = 8;
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Lets the interpreter handle Ctrl-C.
fn look_for_signals() -> io::Result<()> {
    match Python::try_attach(|py| py.check_signals()) {
        Some(looked) => looked.map_err(io::Error::other),
        None => Err(io::Error::other("the interpreter has ended")),
    }
}

fn raised(error: io::Error) -> PyErr {
    let is_python = error.get_ref().is_some_and(|inner| inner.is::<PyErr>());
    match error.kind() {
        _ if is_python => error.into(),
        ErrorKind::TimedOut => PyTimeoutError::new_err(error.to_string()),
        ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        _ => PyConnectionError::new_err(error.to_string()),
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).map_or(LONGEST, |time| time.min(LONGEST))
}

/// Closes a forked child's copies of file descriptors.
#[cfg(unix)]
fn close_copies(descriptors: Vec<std::os::fd::RawFd>) {
    use std::os::fd::{FromRawFd, OwnedFd};
    for descriptor in descriptors {
        // SAFETY: the threads that own it do not exist in this child, and the caller leaked the objects
        // that hold it.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
}

/// The store of a job, which serves all ranks.
#[pyclass(frozen, weakref, module = "gradiron._core._distributed")]
struct StoreServer {
    running: Arc<Running>,
    process: u32,
}

#[pymethods]
impl StoreServer {
    /// Listens on the host's interface; port 0 chooses a free one. `listen_fd` is a socket that is
    /// listening already.
    #[new]
    #[pyo3(signature = (host, port, listen_fd = None))]
    fn new(py: Python<'_>, host: &str, port: u16, listen_fd: Option<i32>) -> PyResult<StoreServer> {
        let started = py.detach(|| match listen_fd {
            None => Running::start(host, port),
            Some(descriptor) => Running::listen(adopt(descriptor)?),
        });
        match started {
            Ok(running) => Ok(StoreServer { running: Arc::new(running), process: std::process::id() }),
            Err(error) => {
                let text = format!("the store cannot listen on {host}, port {port}: {error}");
                Err(error.raw_os_error().map_or_else(
                    || PyOSError::new_err(text.clone()),
                    |code| PyOSError::new_err((code, text.clone())),
                ))
            }
        }
    }
    #[getter]
    fn port(&self) -> PyResult<u16> {
        Ok(self.running.server.port())
    }
    /// The address under which this process itself reaches the store.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.running.server.reached_at().ip().to_string())
    }
    /// Returns the number of ranks that have a `Watch` on this store.
    fn ranks(&self) -> usize {
        self.running.server.count_ranks()
    }
    /// Closes all connections and the port.
    fn stop(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| self.running.stop());
        }
    }
    /// In a forked child: closes its copies of the sockets, so that the other side notices when the parent
    /// closes them.
    fn abandon(&self) {
        if self.process == std::process::id() {
            return;
        }
        #[cfg(unix)]
        {
            std::mem::forget(self.running.clone());
            close_copies(self.running.server.descriptors());
        }
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.running.stop();
        } else {
            std::mem::forget(self.running.clone());
        }
    }
}

#[cfg(unix)]
fn adopt(descriptor: i32) -> io::Result<std::net::TcpListener> {
    use std::os::fd::{FromRawFd, OwnedFd};
    if descriptor < 0 {
        return Err(ErrorKind::InvalidInput.into());
    }
    // SAFETY: the caller gives up this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

#[cfg(not(unix))]
fn adopt(_: i32) -> io::Result<std::net::TcpListener> {
    Err(ErrorKind::Unsupported.into())
}

struct Pool {
    process: u32,
    idle: Vec<Connection>,
}

/// A client of the store. Threads that ask at the same time use separate connections.
#[pyclass(frozen, weakref, module = "gradiron._core._distributed")]
struct StoreClient {
    place: StoreAddress,
    timeout: f64,
    /// Locked only while holding the interpreter's lock, so that it is never locked during a fork.
    pool: Mutex<Pool>,
}

impl StoreClient {
    fn connection(&self, py: Python<'_>) -> PyResult<Connection> {
        {
            let mut pool = lock(&self.pool);
            if pool.process != std::process::id() {
                // A forked child: the connections belong to its parent.
                pool.idle.clear();
                pool.process = std::process::id();
            }
            if let Some(connection) = pool.idle.pop() {
                return Ok(connection);
            }
        }
        let timeout = duration(self.timeout);
        py.detach(|| self.place.connect_again(timeout, &mut look_for_signals)).map_err(raised)
    }
    fn ask(&self, py: Python<'_>, code: Code, parts: &[&[u8]], timeout: Option<f64>) -> PyResult<Message> {
        let connection = self.connection(py)?;
        let timeout = duration(timeout.unwrap_or(self.timeout));
        let message =
            py.detach(|| connection.ask(code, parts, timeout, &mut look_for_signals)).map_err(raised)?;
        let mut pool = lock(&self.pool);
        if pool.idle.len() < MOST_IDLE {
            pool.idle.push(connection);
        }
        drop(pool);
        match message.code {
            Code::Refused => Err(PyValueError::new_err(message.text(0).map_err(raised)?.to_owned())),
            Code::TimedOut => {
                Err(PyTimeoutError::new_err(format!("wait timeout after {}ms", timeout.as_millis())))
            }
            Code::Empty => Err(PyIndexError::new_err("queue is empty")),
            _ => Ok(message),
        }
    }
    /// Sends a request that may wait; its first part is the timeout.
    fn ask_for(&self, py: Python<'_>, code: Code, keys: &[&[u8]], timeout: Option<f64>) -> PyResult<Message> {
        let time = duration(timeout.unwrap_or(self.timeout)).as_millis() as i64;
        let time = time.to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![&time];
        parts.extend_from_slice(keys);
        self.ask(py, code, &parts, timeout)
    }
}

fn value(py: Python<'_>, message: &Message) -> Py<PyBytes> {
    PyBytes::new(py, message.parts.first().map_or(&[], Vec::as_slice)).unbind()
}

fn bytes_of(keys: &[String]) -> Vec<&[u8]> {
    keys.iter().map(String::as_bytes).collect()
}

#[pymethods]
impl StoreClient {
    /// Connects as soon as there is a store, within `timeout` seconds.
    #[new]
    fn new(py: Python<'_>, host: String, port: u16, timeout: f64) -> PyResult<StoreClient> {
        let place = StoreAddress { host, port };
        let first = py.detach(|| place.connect(duration(timeout), &mut look_for_signals)).map_err(raised)?;
        let pool = Mutex::new(Pool { process: std::process::id(), idle: vec![first] });
        Ok(StoreClient { place, timeout, pool })
    }
    fn set(&self, py: Python<'_>, key: &str, value: &[u8]) -> PyResult<()> {
        self.ask(py, Code::Set, &[key.as_bytes(), value], None).map(drop)
    }
    /// Waits for the key, and returns its value.
    #[pyo3(signature = (key, timeout = None))]
    fn get(&self, py: Python<'_>, key: &str, timeout: Option<f64>) -> PyResult<Py<PyBytes>> {
        let message = self.ask_for(py, Code::Get, &[key.as_bytes()], timeout)?;
        Ok(value(py, &message))
    }
    fn add(&self, py: Python<'_>, key: &str, amount: i64) -> PyResult<i64> {
        self.ask(py, Code::Add, &[key.as_bytes(), &amount.to_le_bytes()], None)?.number(0).map_err(raised)
    }
    #[pyo3(signature = (keys, timeout = None))]
    fn wait(&self, py: Python<'_>, keys: Vec<String>, timeout: Option<f64>) -> PyResult<()> {
        self.ask_for(py, Code::Wait, &bytes_of(&keys), timeout).map(drop)
    }
    /// Sets the value if the current one is `expected`, or if there is none and `expected` is empty;
    /// returns the value afterwards.
    fn compare_set(
        &self,
        py: Python<'_>,
        key: &str,
        expected: &[u8],
        desired: &[u8],
    ) -> PyResult<Py<PyBytes>> {
        let message = self.ask(py, Code::CompareSet, &[key.as_bytes(), expected, desired], None)?;
        Ok(value(py, &message))
    }
    fn delete_key(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        let message = self.ask(py, Code::Delete, &[key.as_bytes()], None)?;
        Ok(message.number(0).map_err(raised)? != 0)
    }
    fn num_keys(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, Code::CountKeys, &[], None)?.number(0).map_err(raised)
    }
    fn list_keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let message = self.ask(py, Code::ListKeys, &[], None)?;
        Ok(message.parts.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect())
    }
    fn append(&self, py: Python<'_>, key: &str, value: &[u8]) -> PyResult<()> {
        self.ask(py, Code::Append, &[key.as_bytes(), value], None).map(drop)
    }
    fn check(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<bool> {
        let message = self.ask(py, Code::Check, &bytes_of(&keys), None)?;
        Ok(message.number(0).map_err(raised)? != 0)
    }
    #[pyo3(signature = (keys, timeout = None))]
    fn multi_get(&self, py: Python<'_>, keys: Vec<String>, timeout: Option<f64>) -> PyResult<Py<PyList>> {
        let message = self.ask_for(py, Code::MultiGet, &bytes_of(&keys), timeout)?;
        let values = message.parts.iter().map(|part| PyBytes::new(py, part));
        Ok(PyList::new(py, values)?.unbind())
    }
    fn multi_set(&self, py: Python<'_>, keys: Vec<String>, values: Vec<Vec<u8>>) -> PyResult<()> {
        if keys.len() != values.len() {
            return Err(PyValueError::new_err(format!("{} keys for {} values", keys.len(), values.len())));
        }
        let pairs = keys.iter().zip(&values).flat_map(|(key, value)| [key.as_bytes(), value.as_slice()]);
        self.ask(py, Code::MultiSet, &pairs.collect::<Vec<_>>(), None).map(drop)
    }
    fn queue_push(&self, py: Python<'_>, key: &str, value: &[u8]) -> PyResult<()> {
        self.ask(py, Code::Push, &[key.as_bytes(), value], None).map(drop)
    }
    /// Removes the first element of a queue; raises IndexError if it is empty and `block` is false.
    #[pyo3(signature = (key, block = true, timeout = None))]
    fn queue_pop(
        &self,
        py: Python<'_>,
        key: &str,
        block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyBytes>> {
        let message = if block {
            self.ask_for(py, Code::Pop, &[key.as_bytes()], timeout)?
        } else {
            self.ask(py, Code::Pop, &[&(-1i64).to_le_bytes(), key.as_bytes()], timeout)?
        };
        Ok(value(py, &message))
    }
    fn queue_len(&self, py: Python<'_>, key: &str) -> PyResult<i64> {
        self.ask(py, Code::QueueLength, &[key.as_bytes()], None)?.number(0).map_err(raised)
    }
    #[getter]
    fn host(&self) -> PyResult<&str> {
        Ok(&self.place.host)
    }
    #[getter]
    fn port(&self) -> PyResult<u16> {
        Ok(self.place.port)
    }
}

/// Watches the other ranks of a job, and lets them watch this one.
#[pyclass(frozen, weakref, module = "gradiron._core._distributed")]
struct Watch {
    link: Arc<Link>,
    process: u32,
    is_abandoned: AtomicBool,
}

impl Watch {
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

#[pymethods]
impl Watch {
    #[new]
    #[pyo3(signature = (host, port, job, rank, size, timeout = 60.0))]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        job: &str,
        rank: i64,
        size: i64,
        timeout: f64,
    ) -> PyResult<Watch> {
        if !(0..size).contains(&rank) {
            return Err(PyValueError::new_err(format!("rank {rank} is not in a world of size {size}")));
        }
        let place = StoreAddress { host, port };
        let link = py
            .detach(|| Link::open(place, (job, rank, size), duration(timeout), &mut look_for_signals))
            .map_err(raised)?;
        Ok(Watch { link, process: std::process::id(), is_abandoned: AtomicBool::new(false) })
    }
    /// Returns the reason why the job cannot go on, or None.
    fn failure(&self) -> Option<&str> {
        self.link.failure()
    }
    /// Call before MPI starts, which blocks the interpreter: from now on this process exits if another rank
    /// fails, or after `timeout`.
    #[pyo3(signature = (timeout = 300.0))]
    fn begin_start(&self, timeout: f64) {
        if self.is_ours() {
            self.link.begin_start(duration(timeout));
        }
    }
    /// Call after MPI has started: `failure` reports failures again.
    fn end_start(&self) {
        self.link.end_start();
    }
    /// Returns the ranks that have said goodbye.
    fn left(&self) -> Vec<i64> {
        self.link.left()
    }
    /// Sets a note on what this rank is doing; the others can read it about a second later.
    fn note(&self, text: &str) {
        self.link.set_note(text);
    }
    /// Returns the last note of every rank.
    #[pyo3(signature = (timeout = 5.0))]
    fn notes(&self, py: Python<'_>, timeout: f64) -> PyResult<Vec<Option<String>>> {
        if !self.is_ours() {
            return Err(PyConnectionError::new_err(
                "the watch belongs to the parent process: make a new one after a fork",
            ));
        }
        let notes = py.detach(|| self.link.notes(duration(timeout)));
        notes.ok_or_else(|| PyTimeoutError::new_err("the store does not answer"))
    }
    /// Tells all other ranks that this one has failed.
    fn fail(&self, py: Python<'_>, reason: &str) {
        if self.is_ours() {
            py.detach(|| self.link.fail(reason));
        }
    }
    /// Leaves the job in order.
    fn goodbye(&self, py: Python<'_>) {
        if self.is_ours() {
            py.detach(|| self.link.goodbye(Duration::from_secs(2)));
        }
    }
    /// In a forked child: closes its copy of the connection, so that the store notices when the parent
    /// closes it.
    fn abandon(&self) {
        if self.is_ours() || self.is_abandoned.swap(true, Ordering::Relaxed) {
            return;
        }
        #[cfg(unix)]
        {
            std::mem::forget(self.link.clone());
            close_copies(vec![self.link.descriptor()]);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.is_ours() {
            self.link.hang_up();
        }
    }
}

/// Serves MPI's startup protocol for this process; returns the descriptor for PMI_FD.
#[cfg(unix)]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
#[pyfunction]
#[pyo3(signature = (host, port, job, rank, size, mapping, timeout = 300.0))]
fn serve_pmi(
    py: Python<'_>,
    host: String,
    port: u16,
    job: &str,
    rank: i64,
    size: i64,
    mapping: &str,
    timeout: f64,
) -> PyResult<i32> {
    if !(0..size).contains(&rank) {
        return Err(PyValueError::new_err(format!("rank {rank} is not in a world of size {size}")));
    }
    let place = StoreAddress { host, port };
    py.detach(|| pmi::serve(&place, job, size, mapping, duration(timeout), &mut look_for_signals))
        .map_err(raised)
}

pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let module = PyModule::new(py, "_distributed")?;
    module.add_class::<StoreServer>()?;
    module.add_class::<StoreClient>()?;
    module.add_class::<Watch>()?;
    #[cfg(unix)]
    module.add_function(wrap_pyfunction!(serve_pmi, &module)?)?;
    Ok(module)
}
