//! Bars and wrapped text for terminals.

use std::env;

/// How tables are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Block characters, an eighth of a cell fine.
    Unicode,
    Ascii,
}

impl Charset {
    /// ASCII when asked for, or when the locale is not UTF-8.
    pub fn choose(ascii: bool) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os).find(|value| !value.is_empty());
        let utf8 = locale.is_some_and(|locale| {
            let locale = locale.to_string_lossy().to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if ascii || !utf8 { Self::Ascii } else { Self::Unicode }
    }

    /// A bar of `width` cells, filled by `share` in [0, 1].
    pub fn bar(self, share: f64, width: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let share = share.clamp(0.0, 1.0);
        match self {
            Self::Ascii => {
                let full = (share * width as f64).round() as usize;
                "#".repeat(full) + &".".repeat(width - full)
            }
            Self::Unicode => {
                let eighths = (share * width as f64 * 8.0).round() as usize;
                let (full, rest) = (eighths / 8, eighths % 8);
                let used = full + usize::from(rest > 0);
                "█".repeat(full) + EIGHTHS[rest] + &" ".repeat(width - used)
            }
        }
    }
}

/// Breaks `text` into lines of at most `width` characters, each led by `indent`. Control characters are shown as
/// spaces, so that a text cannot drive the terminal.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in plain.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_their_width() {
        assert_eq!(Charset::Ascii.bar(0.5, 4), "##..");
        assert_eq!(Charset::Unicode.bar(1.0, 3), "███");
        assert_eq!(Charset::Unicode.bar(0.5, 3), "█▌ ");
        for share in [0.0, 0.001, 0.33, 0.999, 1.0] {
            assert_eq!(Charset::Unicode.bar(share, 10).chars().count(), 10);
            assert_eq!(Charset::Ascii.bar(share, 10).len(), 10);
        }
    }

    #[test]
    fn text_is_wrapped_and_cannot_drive_the_terminal() {
        assert_eq!(wrap("a bb ccc", 4, "  "), "  a bb\n  ccc\n");
        assert_eq!(wrap("red\x1b[31m\nnext", 40, ""), "red [31m next\n");
    }
}
