//! What must not be seen in a value.

/// Stands where a secret was. A value that holds it is refused, so that no secret is lost in silence.
pub const MARK: &str = "[redacted]";

/// `text`, if it is a URL, without its login and without what follows `?` or `#`; rather too little than too much is left.
pub fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // The last @: a password may hold one, or a slash, if nobody escaped it.
    let (login, place) = match rest.rsplit_once('@') {
        // Or a parameter holds it, and where the place ends cannot be told.
        Some((login, _)) if login.contains(['?', '#']) => return format!("{scheme}://{MARK}"),
        Some((_, place)) => (format!("{MARK}@"), place),
        None => (String::new(), rest),
    };
    match place.find(['?', '#']) {
        Some(end) => format!("{scheme}://{login}{}{MARK}", &place[..=end]),
        None => format!("{scheme}://{login}{place}"),
    }
}

pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

pub fn is_redacted(text: &str) -> bool {
    text.contains(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_place_and_nothing_that_may_be_a_secret() {
        for (text, expected) in [
            ("plain text, user@host", "plain text, user@host"),
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://:hunter2@host:6379/0", "redis://[redacted]@host:6379/0"),
            ("rediss://hunter2:hunter2@host/0?protocol=3", "rediss://[redacted]@host/0?[redacted]"),
            ("redis://:hunter2/@x:y@host/0", "redis://[redacted]@host/0"),
            ("redis://:one@a,redis://:two@b", "redis://[redacted]@b"),
            ("https://hunter2@host/path", "https://[redacted]@host/path"),
            ("redis+unix:///run/redis?db=1&pass=hunter2", "redis+unix:///run/redis?[redacted]"),
            ("redis://h?x=hunter2", "redis://h?[redacted]"),
            ("redis://h?hunter2@2", "redis://[redacted]"),
            ("redis://:hunter?2@h/0", "redis://[redacted]"),
            ("redis://h/0#hunter2?x", "redis://h/0#[redacted]"),
            ("redis://é@h/é?é", "redis://[redacted]@h/é?[redacted]"),
        ] {
            assert_eq!(url(text), expected, "{text}");
        }
    }
}
