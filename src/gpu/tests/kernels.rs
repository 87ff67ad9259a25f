//! All kernels are valid WGSL, whatever the adapter.

use crate::gpu::shader::code::validate;
use crate::gpu::shader::samples::ShaderSamples;
use std::path::{Path, PathBuf};

/// The types in `file` or folder that implement `ShaderKind`.
fn kinds_in(path: &Path, kinds: &mut Vec<String>) {
    if path.is_dir() {
        let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return files.for_each(|file| kinds_in(&file, kinds));
    }
    let text = std::fs::read_to_string(path).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("impl ShaderKind for "));
    kinds.extend(names.map(|name| name.trim_end_matches(" {").to_owned()));
}

#[test]
fn every_kernel_is_valid() {
    let mut sampled = Vec::new();
    std::thread::scope(|scope| {
        for ShaderSamples { kind, each } in inventory::iter::<ShaderSamples> {
            sampled.push((*kind).to_owned());
            scope.spawn(|| each(&validate));
        }
    });
    let mut kinds = Vec::new();
    kinds_in(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/gpu"), &mut kinds);
    kinds.sort();
    sampled.sort();
    assert_eq!(kinds, sampled, "each kernel has samples, and each has its own name");
}
