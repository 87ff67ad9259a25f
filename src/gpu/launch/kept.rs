//! Launches that are kept to be sent again: their kernels, parameters and sizes stay, and only bind groups over other memory
//! are made anew.

use crate::base::Result;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::{Kernel, ShaderKind};
use crate::gpu::device::{Gpu, gpu};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Launches with more memory of their own are not kept.
const MAX_OWN: usize = 4 << 20;

/// Launches that were made once.
pub struct Launches(Vec<KeptLaunch>);

struct KeptLaunch {
    kernel: Arc<Kernel>,
    places: SmallVec<[Place; 8]>,
    words: SmallVec<[u32; 32]>,
    groups: [u32; 3],
    /// The bind group of the last time, and the memory that it binds.
    bound: Option<(wgpu::BindGroup, SmallVec<[wgpu::Buffer; 8]>)>,
}

/// A buffer of a launch.
enum Place {
    /// The buffer of this number among those that are given each time.
    Given(usize),
    /// Memory that a kernel took for itself.
    Own(Buffer),
}

/// A launch as it is made.
struct Made {
    kernel: Arc<Kernel>,
    buffers: SmallVec<[Buffer; 8]>,
    words: SmallVec<[u32; 32]>,
    groups: [u32; 3],
}

thread_local! {
    static IS_KEPT: Cell<bool> = const { Cell::new(false) };
    /// The launches of this thread while they are kept; `None` once it did something else.
    static MADE: RefCell<Option<Vec<Made>>> = const { RefCell::new(None) };
}

impl Gpu {
    /// Records a launch of the kernel of `kind` over `buffers`, with the parameters `words`.
    pub(in crate::gpu) fn launch(
        &self,
        kind: &impl ShaderKind,
        buffers: &[&Buffer],
        words: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        let kernel = self.kernel(kind)?;
        self.stream().launch(self, &kernel, buffers, words, groups)?;
        note(&kernel, buffers, words, groups);
        Ok(())
    }
}

/// Keeps a launch that was made, if this thread keeps launches.
#[inline]
fn note(kernel: &Arc<Kernel>, buffers: &[&Buffer], words: &[u32], groups: [u32; 3]) {
    if IS_KEPT.get() && !groups.contains(&0) {
        let buffers = buffers.iter().map(|&buffer| buffer.clone()).collect();
        let made = Made { kernel: Arc::clone(kernel), buffers, words: words.into(), groups };
        MADE.with_borrow_mut(|all| {
            if let Some(all) = all {
                all.push(made);
            }
        });
    }
}

/// Notes that this thread does something other than launch: what it does cannot be kept.
pub(in crate::gpu) fn note_other() {
    if IS_KEPT.get() {
        MADE.set(None);
    }
}

/// Calls `run`, and returns its launches if it did nothing else with the GPU. `given` are the buffers that others may take
/// the place of.
pub fn keep(given: &[&Buffer], run: impl FnOnce() -> Result<()>) -> Result<Option<Launches>> {
    /// Ends keeping, also if a panic does.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            IS_KEPT.set(false);
        }
    }
    MADE.set(Some(Vec::new()));
    IS_KEPT.set(true);
    let end = End;
    run()?;
    drop(end);
    let Some(all) = MADE.take() else { return Ok(None) };
    let mut own: Vec<Buffer> = Vec::new();
    let mut launches = Vec::with_capacity(all.len());
    for Made { kernel, buffers, words, groups } in all {
        let place = |buffer: Buffer| match given.iter().position(|other| other.same(&buffer)) {
            Some(at) => Place::Given(at),
            None => {
                if !own.iter().any(|known| known.same(&buffer)) {
                    own.push(buffer.clone());
                }
                Place::Own(buffer)
            }
        };
        let places = buffers.into_iter().map(place).collect();
        launches.push(KeptLaunch { kernel, places, words, groups, bound: None });
    }
    let is_small = own.iter().map(Buffer::len).sum::<usize>() <= MAX_OWN;
    Ok(is_small.then_some(Launches(launches)))
}

impl Launches {
    /// Makes the launches again. `given` are as those of [`keep`], at least as long.
    pub fn send(&mut self, given: &[&Buffer]) -> Result<()> {
        let gpu = gpu()?;
        let mut stream = gpu.stream();
        for KeptLaunch { kernel, places, words, groups, bound } in &mut self.0 {
            let mut buffers: SmallVec<[&wgpu::Buffer; 8]> = SmallVec::new();
            for place in &*places {
                buffers.push(match place {
                    Place::Given(at) => given[*at].raw()?,
                    Place::Own(buffer) => buffer.raw()?,
                });
            }
            let is_bound = |last: &[wgpu::Buffer]| last.iter().zip(&buffers).all(|(last, now)| last == *now);
            let group = match bound {
                Some((group, last)) if is_bound(last) => group,
                _ => {
                    let group = stream.bind(gpu, kernel, &buffers);
                    let last = buffers.iter().map(|&buffer| buffer.clone()).collect();
                    &bound.insert((group, last)).0
                }
            };
            stream.dispatch(gpu, kernel, group, words, *groups);
        }
        Ok(())
    }
}
