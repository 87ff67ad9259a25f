//! Generators of random numbers.

use crate::base::{Device, Result, lock};
use crate::capture::{Recorder, Restore, Retain, Rewind, Whole};
use crate::cpu::random as cpu;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A stream of random numbers that can be seeded, saved and restored.
#[derive(Clone)]
pub struct Generator {
    stream: Arc<Mutex<Stream>>,
    pub device: Device,
}

#[derive(Clone)]
pub struct Stream {
    pub cpu: cpu::Generator,
    /// The position in the GPU's stream: a seed, and the number of blocks drawn.
    seed: u64,
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only shaders draw by it"))]
    drawn: u64,
}

impl Generator {
    pub fn new(device: Device) -> Generator {
        let stream = Stream { cpu: cpu::Generator::default(), seed: cpu::DEFAULT_SEED, drawn: 0 };
        Generator { stream: Arc::new(Mutex::new(stream)), device }
    }

    /// A new generator in the same state.
    pub fn copy(&self) -> Generator {
        Generator { stream: Arc::new(Mutex::new(self.stream().clone())), device: self.device }
    }

    /// The generator for operators that are given none.
    pub fn global() -> &'static Generator {
        static GLOBAL: OnceLock<Generator> = OnceLock::new();
        GLOBAL.get_or_init(|| Generator::new(Device::Cpu))
    }

    pub fn stream(&self) -> MutexGuard<'_, Stream> {
        lock(&self.stream)
    }

    pub fn same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream)
    }
}

impl Stream {
    pub fn manual_seed(&mut self, seed: u64) {
        self.cpu.manual_seed(seed);
        (self.seed, self.drawn) = (seed, 0);
    }

    /// Seeds with an unpredictable number, which it returns.
    pub fn seed(&mut self) -> u64 {
        let seed = self.cpu.seed();
        (self.seed, self.drawn) = (seed, 0);
        seed
    }

    /// The position in the GPU's stream: a seed, and the number of blocks drawn.
    pub fn gpu_state(&self) -> (u64, u64) {
        (self.seed, self.drawn)
    }

    pub fn set_gpu_state(&mut self, seed: u64, drawn: u64) {
        (self.seed, self.drawn) = (seed, drawn);
    }

    /// Reserves the next `n` numbers of the GPU's stream.
    #[cfg(feature = "gpu")]
    pub(crate) fn place(&mut self, n: usize) -> crate::gpu::Draw {
        let draw = crate::gpu::Draw { seed: self.seed, offset: self.drawn };
        self.drawn = self.drawn.wrapping_add(crate::gpu::Draw::blocks(n));
        draw
    }
}

pub(crate) fn stream(generator: &Option<Generator>) -> MutexGuard<'_, Stream> {
    generator.as_ref().unwrap_or(Generator::global()).stream()
}

impl Rewind for Generator {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.stream) as usize
    }

    fn remember(&self) -> Restore {
        let (generator, state) = (self.clone(), self.stream().clone());
        Box::new(move || *generator.stream() = state)
    }
}

impl Retain for Option<Generator> {
    type Retained = Whole<Option<Generator>>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained> {
        recorder.draw(self.as_ref().unwrap_or(Generator::global()));
        Ok(Whole(self.clone()))
    }
}
