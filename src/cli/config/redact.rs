//! What must not be seen in a value.

/// Stands where a secret was. A value that holds it is refused, so that no secret is lost in silence.
pub const MARK: &str = "[redacted]";

/// Parts of the names of query parameters whose values are secrets.
const SECRET: [&str; 5] = ["pass", "secret", "token", "key", "auth"];

/// `text` without the passwords of the URLs in it; rather too little than too much is left.
pub fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // The last @: a password may hold one, or a slash, if nobody escaped it.
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (login_without_password(login), place),
        None => (String::new(), rest),
    };
    let place = match place.split_once('?') {
        Some((place, query)) => {
            let query: Vec<String> = query.split('&').map(parameter).collect();
            format!("{place}?{}", query.join("&"))
        }
        None => place.to_owned(),
    };
    format!("{scheme}://{login}{place}")
}

pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

pub fn is_redacted(text: &str) -> bool {
    text.contains(MARK)
}

/// A login without a colon may be a token.
fn login_without_password(login: &str) -> String {
    match login.split_once(':') {
        Some((user, _)) => format!("{user}:{MARK}@"),
        None => format!("{MARK}@"),
    }
}

fn parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if SECRET.iter().any(|part| name.to_lowercase().contains(part)) => format!("{name}={MARK}"),
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_everything_but_its_secrets() {
        for (text, expected) in [
            ("plain text, user@host", "plain text, user@host"),
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://:hunter2@host:6379/0", "redis://:[redacted]@host:6379/0"),
            ("rediss://judge:hunter2@host/0?protocol=3", "rediss://judge:[redacted]@host/0?protocol=3"),
            ("redis://:hunter2/@x:y@host/0", "redis://:[redacted]@host/0"),
            ("redis://:one@a,redis://:two@b", "redis://:[redacted]@b"),
            ("https://hunter2@host/path", "https://[redacted]@host/path"),
            ("redis+unix:///run/redis?db=1&pass=hunter2", "redis+unix:///run/redis?db=1&pass=[redacted]"),
            ("http://host:4317/?api_key=hunter2&x", "http://host:4317/?api_key=[redacted]&x"),
        ] {
            assert_eq!(url(text), expected, "{text}");
        }
    }
}
