//! As much of protobuf as the benchmark needs: writing fields with a length, and walking to a field.

/// Appends field `number` with these bytes.
pub fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut left = bytes.len();
    while left >= 0x80 {
        out.push((left as u8 & 0x7f) | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
    out.extend_from_slice(bytes);
}

/// Appends field `number` with this small number.
pub fn put_number(out: &mut Vec<u8>, number: u8, value: u8) {
    debug_assert!(value < 0x80, "one byte holds the value");
    out.extend_from_slice(&[number << 3, value]);
}

/// A field's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first field with this number, if the message is well formed up to it.
pub fn find(mut message: &[u8], number: u64) -> Option<Field<'_>> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)?),
            1 => Field::Bytes(take(&mut message, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                Field::Bytes(take(&mut message, length)?)
            }
            5 => Field::Bytes(take(&mut message, 4)?),
            _ => return None,
        };
        if key >> 3 == number {
            return Some(field);
        }
    }
    None
}

/// Goes down through nested messages; the last number is the field asked for.
pub fn walk<'a>(message: &'a [u8], path: &[u64]) -> Option<Field<'a>> {
    let (last, above) = path.split_last()?;
    let mut at = message;
    for number in above {
        at = match find(at, *number)? {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => return None,
        };
    }
    find(at, *last)
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(from, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found() {
        let mut inner = Vec::new();
        put_number(&mut inner, 1, 3);
        put(&mut inner, 4, &[7; 300]);
        let mut outer = Vec::new();
        put(&mut outer, 2, b"before");
        put(&mut outer, 3, &inner);
        assert_eq!(walk(&outer, &[3, 1]), Some(Field::Number(3)));
        assert_eq!(walk(&outer, &[3, 4]), Some(Field::Bytes(&[7; 300])));
        assert_eq!(walk(&outer, &[2]), Some(Field::Bytes(b"before")));
        assert_eq!(walk(&outer, &[5]), None);
        assert_eq!(walk(&outer[..outer.len() - 1], &[3, 1]), None);
    }
}
