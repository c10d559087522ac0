//! Inputs made from other inputs, the same every time: for runs without a fuzzer's own engine.

/// Numbers that look random and are the same in every run (xorshift).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Below `bound`; zero if there is nothing below it.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if bound == 0 { 0 } else { (self.0 >> 11) as usize % bound }
    }
}

/// Pieces that decoders treat specially, and that flipped bits hardly ever spell.
const PIECES: [&[u8]; 36] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\\u0000",
    b"null",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"2147483648",
    b"1e999",
    b"0.5",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"%2F",
    b"%00",
    b"%zz",
    b"+",
    b"://",
    b"@",
    b"127.0.0.1",
    b"[::1]",
    b"=",
    b"==",
    b"/",
    b"\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"9999-12-31T23:59:59.9999Z",
];
/// The largest input that is made.
const LARGEST: usize = 8 * 1024;

/// One of the seeds with a few changes.
pub fn mutate(seeds: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut input = pick(seeds, numbers).cloned().unwrap_or_default();
    for _ in 0..=numbers.below(4) {
        change(&mut input, seeds, numbers);
    }
    input.truncate(LARGEST);
    input
}

fn pick<'a, T>(all: &'a [T], numbers: &mut Numbers) -> Option<&'a T> {
    all.get(numbers.below(all.len()))
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], numbers: &mut Numbers) {
    let at = numbers.below(input.len());
    let until = at + numbers.below((input.len() - at).min(32) + 1);
    match numbers.below(8) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = numbers.below(256) as u8;
            }
        }
        3 => {
            input.drain(at..until);
        }
        4 => {
            let again = input[at..until].repeat(1 + numbers.below(4));
            input.splice(at..at, again);
        }
        5 => input.truncate(at),
        6 => {
            let other = pick(seeds, numbers).map_or(&[][..], Vec::as_slice);
            let from = numbers.below(other.len());
            let to = from + numbers.below((other.len() - from).min(64) + 1);
            input.splice(at..until, other[from..to].iter().copied());
        }
        _ => {
            let piece = pick(&PIECES, numbers).copied().unwrap_or_default();
            let replaced = if numbers.below(2) == 0 { at } else { until };
            input.splice(at..replaced, piece.iter().copied());
        }
    }
}
