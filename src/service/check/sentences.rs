//! Where sentences end in a text that is still being written.

/// Letters that end a sentence if white space follows.
const STOPS: [char; 4] = ['.', '!', '?', '…'];

/// Those of scripts that put no white space between sentences.
const WIDE: [char; 3] = ['。', '！', '？'];

/// What may stand between the end of a sentence and the white space after it.
const CLOSING: [char; 16] = ['"', '\'', '”', '’', '»', '«', '“', ')', ']', '}', '」', '』', '）', '】', '*', '_'];

/// Letters of [`CLOSING`] in a row, at most.
const CLOSINGS: usize = 4;

/// Digits of the number of a list, at most, and letters in front of it that are looked at for the start of its line.
const LIST_DIGITS: usize = 3;
const INDENT: usize = 8;

/// Finds the ends of sentences in a text that grows. Each letter is looked at a bounded number of times, however the text
/// is cut into pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sentences {
    /// Byte from which on more text may change what was found.
    from: usize,
    /// The newest end before that.
    end: usize,
}

impl Sentences {
    /// The end of the newest sentence of `text`, which begins with the text of the call before; 0 for none. As a byte
    /// offset, after the sentence and what closes it, before white space.
    ///
    /// - `.` `!` `?` `…` end a sentence where white space follows, and where nothing follows yet: the piece may be the
    ///   last for a while. A full stop does not after a single letter ("e.g.", "J."), after the number of a list at the
    ///   start of a line, and not yet after a digit at the end of the text, which may be half a number.
    /// - `。` `！` `？` end one whatever follows.
    /// - A line end ends one.
    pub fn newest_end(&mut self, text: &str) -> usize {
        let mut newest = self.end;
        let mut letters = text[self.from..].char_indices().map(|(at, letter)| (self.from + at, letter)).peekable();
        let mut undecided = None;
        while let Some((at, letter)) = letters.next() {
            if letter == '\n' {
                newest = text[..at].strip_suffix('\r').map_or(at, str::len);
                self.end = newest;
                continue;
            }
            let wide = WIDE.contains(&letter);
            if !wide && !STOPS.contains(&letter) || letters.peek().is_some_and(|(_, next)| is_stop(*next)) {
                continue;
            }
            let mut end = at + letter.len_utf8();
            for closing in text[end..].chars().take(CLOSINGS).take_while(|letter| CLOSING.contains(letter)) {
                end += closing.len_utf8();
            }
            match text[end..].chars().next() {
                Some(next) if wide || next.is_whitespace() && !is_short(text, at) => {
                    newest = end;
                    self.end = end;
                }
                Some(_) => {}
                None => {
                    undecided = Some(at);
                    let half = letter == '.' && text[..at].ends_with(|before: char| before.is_ascii_digit());
                    if wide || !half && !is_short(text, at) {
                        newest = end;
                    }
                }
            }
        }
        self.from = undecided.unwrap_or(text.len());
        newest
    }
}

fn is_stop(letter: char) -> bool {
    STOPS.contains(&letter) || WIDE.contains(&letter)
}

/// Whether the full stop at `at`, if it is one, belongs to what stands in front of it: a single letter, or the number of a
/// list.
fn is_short(text: &str, at: usize) -> bool {
    if !text[at..].starts_with('.') {
        return false;
    }
    let mut before = text[..at].chars().rev().take(LIST_DIGITS + INDENT + 1).peekable();
    if before.next_if(|letter| letter.is_alphabetic()).is_some() {
        return !before.next().is_some_and(char::is_alphanumeric);
    }
    let mut digits = 0;
    while before.next_if(char::is_ascii_digit).is_some() {
        digits += 1;
    }
    let line = before.find(|letter| !matches!(letter, ' ' | '\t'));
    (1..=LIST_DIGITS).contains(&digits) && line.is_none_or(|letter| letter == '\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sentences that a text is known to end with, after each of its pieces.
    fn told(pieces: &[&str]) -> Vec<String> {
        let (mut sentences, mut text) = (Sentences::default(), String::new());
        let mut told = |piece: &&str| {
            text.push_str(piece);
            text[..sentences.newest_end(&text)].to_owned()
        };
        pieces.iter().map(&mut told).collect()
    }

    #[test]
    fn a_sentence_ends_at_its_mark_before_white_space() {
        for (text, expected) in [
            ("", ""),
            ("Hello", ""),
            ("Hello. How", "Hello."),
            ("Hello! How are you? I", "Hello! How are you?"),
            ("Well… yes", "Well…"),
            ("Well... yes", "Well..."),
            ("What?! No", "What?!"),
            ("She said \"Go.\" Then", "She said \"Go.\""),
            ("(So it is.) But", "(So it is.)"),
            ("*Waves.* But", "*Waves.*"),
            ("One line\nand", "One line"),
            ("One line\r\nand", "One line"),
            ("你好。我", "你好。"),
            ("「走！」他", "「走！」"),
            ("何？何", "何？"),
            ("I was born in 1990. Then", "I was born in 1990."),
            ("I have 3! And", "I have 3!"),
            ("See example.com for more", ""),
            ("It costs 3.14 now", ""),
            ("Ask J. Smith, e.g. about the U.S. of", ""),
            ("1. Eggs\n  12. Milk", "1. Eggs"),
            ("Who?me", ""),
        ] {
            assert_eq!(told(&[text]), [expected], "{text}");
        }
    }

    #[test]
    fn what_a_piece_ends_with_is_over_unless_it_may_be_half_of_something() {
        assert_eq!(told(&["Hello.", " How are", " you?"]), ["Hello.", "Hello.", "Hello. How are you?"]);
        assert_eq!(told(&["Go to example.", "com"]), ["Go to example.", ""]);
        assert_eq!(told(&["It is 3.", "14", " now."]), ["", "", "It is 3.14 now."]);
        assert_eq!(told(&["I have 3.", " Then"]), ["", "I have 3."]);
        assert_eq!(told(&["\"Go.", "\"", " Then"]), ["\"Go.", "\"Go.\"", "\"Go.\""]);
        assert_eq!(told(&["走。", "」"]), ["走。", "走。」"]);
        assert_eq!(told(&["Line\r", "\n"]), ["", "Line"]);
        assert_eq!(told(&["Dr", ". ", "J", ".", " "]), ["", "Dr.", "Dr.", "Dr.", "Dr."]);
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter_for_the_whole(
            letters in prop::collection::vec(prop::sample::select(vec![
                "a", "B", "1", "23", ".", "!", "…", "。", "？", " ", "\n", "\r\n", "\"", "」", ")", "*", "é", "😀",
            ]), 0..60),
            cuts in prop::collection::vec(any::<bool>(), 60),
        ) {
            let whole = letters.concat();
            let mut pieces = vec![String::new()];
            for (letter, cut) in letters.iter().zip(cuts) {
                if cut {
                    pieces.push(String::new());
                }
                pieces.last_mut().into_iter().for_each(|piece| piece.push_str(letter));
            }
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(told(&pieces).pop(), told(&[&whole]).pop());
            for end in told(&pieces) {
                prop_assert!(whole.starts_with(&end));
            }
        }
    }
}
