//! Resampling along one dimension: each element of the result is a weighted sum of some elements of the
//! source, its taps.

/// The taps of result `i` are `from[starts[i]..starts[i + 1]]`, with their weights.
#[derive(Clone, Debug, Default)]
pub struct ResampleWeights {
    pub starts: Vec<u32>,
    pub from: Vec<u32>,
    pub weights: Vec<f64>,
    /// The length of the source.
    pub length: usize,
}

impl ResampleWeights {
    pub fn new(length: usize) -> ResampleWeights {
        ResampleWeights { starts: vec![0], length, ..ResampleWeights::default() }
    }

    /// Adds the taps of the next result. If two taps may coincide, they must be in ascending order.
    pub fn push(&mut self, taps: impl IntoIterator<Item = (usize, f64)>) {
        for (from, weight) in taps {
            self.from.push(from as u32);
            self.weights.push(weight);
        }
        self.starts.push(self.from.len() as u32);
    }

    /// True if each result is one element of the source.
    pub fn picks(&self) -> bool {
        self.starts.iter().enumerate().all(|(i, &start)| start as usize == i)
            && self.weights.iter().all(|&weight| weight == 1.0)
    }

    /// True if the result equals the source.
    pub fn change_nothing(&self) -> bool {
        self.picks() && self.length == self.places() && self.from.is_sorted_by(|a, b| a < b)
    }

    /// The number of results.
    pub fn places(&self) -> usize {
        self.starts.len() - 1
    }

    /// The transposed sums: for each element of the source, the results to which it contributes.
    pub fn transposed(&self) -> ResampleWeights {
        let mut into: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.length];
        for i in 0..self.places() {
            for k in self.starts[i] as usize..self.starts[i + 1] as usize {
                into[self.from[k] as usize].push((i, self.weights[k]));
            }
        }
        let mut taps = ResampleWeights::new(self.places());
        into.into_iter().for_each(|all| taps.push(all));
        taps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tap_each_is_a_choice() {
        let of = |taps: &[&[usize]], length| {
            let mut all = ResampleWeights::new(length);
            taps.iter().for_each(|taps| all.push(taps.iter().map(|&at| (at, 1.0))));
            (all.picks(), all.change_nothing())
        };
        assert_eq!(of(&[&[0], &[1], &[2]], 3), (true, true));
        assert_eq!(of(&[&[0], &[0], &[2]], 3), (true, false));
        assert_eq!(of(&[&[0], &[1]], 3), (true, false));
        assert_eq!(of(&[&[0, 1], &[], &[2]], 3), (false, false));
    }

    #[test]
    fn turned_twice_they_are_the_same() {
        let mut taps = ResampleWeights::new(3);
        taps.push([(0, 0.5), (1, 0.25)]);
        taps.push([]);
        taps.push([(1, 1.0), (2, 2.0)]);
        let turned = taps.transposed();
        assert_eq!((turned.places(), turned.length), (3, 3));
        assert_eq!((&turned.starts[..], &turned.from[..]), (&[0, 1, 3, 4][..], &[0, 0, 2, 2][..]));
        let back = turned.transposed();
        assert_eq!((back.from, back.weights), (taps.from, taps.weights));
    }
}
