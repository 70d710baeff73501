//! Ids and names that every server takes.
//!
//! A session may go on with another vendor, and stored calls may come from elsewhere: what one
//! server made up, another refuses.

use std::borrow::Cow;

/// The longest id and the longest name that all vendors take.
const LONGEST: usize = 64;

/// A call id of letters, digits, `_` and `-`. Two that differ stay different, and a call and
/// its result get the same one.
pub(crate) fn call_id(id: &str) -> Cow<'_, str> {
    if is_plain(id) {
        return Cow::Borrowed(id);
    }
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Cow::Owned(format!("{}_{hash:016x}", plain(id, LONGEST - 17)))
}

/// The name of a tool of letters, digits, `_` and `-`.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        Cow::Borrowed(name)
    } else if name.is_empty() {
        Cow::Borrowed("_")
    } else {
        Cow::Owned(plain(name, LONGEST))
    }
}

fn is_plain(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_plain_byte)
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn plain(text: &str, longest: usize) -> String {
    let plain = |c: char| {
        let is_plain = u8::try_from(c).is_ok_and(is_plain_byte);
        if is_plain { c } else { '_' }
    };
    text.chars().take(longest).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_server_takes_stays_as_it_is() {
        assert_eq!(call_id("toolu_01-A"), "toolu_01-A");
        assert_eq!(tool_name("read_file"), "read_file");
    }

    #[test]
    fn foreign_ids_become_plain_and_stay_different() {
        let ids = ["functions.weather:0", "functions.weather:1", " ", "", "ü"];
        let made: Vec<_> = ids.iter().map(|id| call_id(id).into_owned()).collect();
        for (position, id) in made.iter().enumerate() {
            assert!(is_plain(id), "{id}");
            assert!(!made[position + 1..].contains(id), "{id}");
        }
        assert!(is_plain(&call_id(&"x".repeat(300))));
    }

    #[test]
    fn foreign_names_become_plain() {
        assert_eq!(tool_name("weather.now tomorrow"), "weather_now_tomorrow");
        assert_eq!(tool_name(""), "_");
        assert_eq!(tool_name(&"x".repeat(300)).len(), 64);
    }
}
