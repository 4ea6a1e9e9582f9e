//! Policies by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Policy, PolicyFields};
use crate::near;
use crate::service::{ErrorCode, JudgeError};

/// The policy of a check that names none.
const DEFAULT: &str = "default";

/// Bytes of a name, at most; longer ones are nobody's, and are not compared with all that are known.
const NAME_BYTES: usize = 64;

/// Named policies. The default value has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies(BTreeMap<String, Policy>);

/// The file (TOML).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoliciesFile {
    policies: BTreeMap<String, PolicyFields>,
}

impl Policies {
    /// Reads the text of a file: a table `[policies.NAME]` for each.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: PoliciesFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            format!("line {}: {}", before.matches('\n').count() + 1, error.message())
        })?;
        if file.policies.is_empty() {
            return Err("there is no table [policies.NAME]".to_owned());
        }
        let (mut policies, mut wrong) = (BTreeMap::new(), Vec::new());
        for (name, fields) in file.policies {
            if name.is_empty() || name.len() > NAME_BYTES {
                wrong.push(format!("policies.{name:?}: a name has from 1 to {NAME_BYTES} bytes"));
            }
            match Policy::try_from(fields) {
                Ok(policy) => drop(policies.insert(name, policy)),
                Err(faults) => wrong.extend(faults.into_iter().map(|fault| {
                    let dot = if fault.field.is_empty() { "" } else { "." };
                    format!("policies.{name}{dot}{}: {}", fault.field, fault.message)
                })),
            }
        }
        if wrong.is_empty() { Ok(Self(policies)) } else { Err(wrong.join("; ")) }
    }

    /// The policy that a check means which names `name`, or none, and its own name.
    ///
    /// # Errors
    /// NOT_FOUND with the names that may have been meant; INVALID_ARGUMENT where none is named and there is no `default`.
    pub fn find(&self, name: &str) -> Result<(String, Policy), JudgeError> {
        let wanted = if name.is_empty() { DEFAULT } else { name };
        if let Some(policy) = self.0.get(wanted) {
            return Ok((wanted.to_owned(), *policy));
        }
        if name.is_empty() {
            let message = format!("it is missing: send one, or name one; this judge has no policy `{DEFAULT}`");
            return Err(JudgeError::invalid("policy", message));
        }
        let known = match self.0.len() {
            0 => "this judge was started without policies".to_owned(),
            _ if name.len() > NAME_BYTES => format!("a name has at most {NAME_BYTES} bytes"),
            _ => format!("near it: {}", near::meant(name, self.0.keys().map(String::as_str))),
        };
        let shown: String = name.chars().take(NAME_BYTES).collect();
        let message = format!("policy_name: no policy is called {shown:?}; {known}");
        Err(JudgeError { field: Some("policy_name".to_owned()), ..JudgeError::new(ErrorCode::NotFound, message) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::{Duration, Instant};

    use super::*;
    use crate::service::check::{Measure, OnError};

    const TWO: &str = "\
[policies.default]
block = { s_prism = 0.2 }

[policies.strict]
block = { s_prism = 0.3, linguistic_style = 0.25 }
warn.task_framing = 0.5
on_error = \"block\"
budget_ms = 200
min_tokens = 8
";

    #[test]
    fn a_file_names_policies_and_a_check_without_a_name_means_the_default() {
        let policies = Policies::parse(TWO).unwrap();
        let (name, default) = policies.find("").unwrap();
        assert_eq!((name.as_str(), default.on_error(), default.min_tokens()), ("default", OnError::Allow, 0));
        let (name, strict) = policies.find("strict").unwrap();
        assert_eq!((name.as_str(), strict.on_error(), strict.min_tokens()), ("strict", OnError::Block, 8));
        let now = Instant::now();
        assert_eq!(strict.deadline(None, now), Some(now + Duration::from_millis(200)));
        assert_eq!(Measure::ALL.map(|measure| strict.block().get(measure)), [Some(0.3), None, None, Some(0.25)]);
        assert_eq!(Measure::ALL.map(|measure| strict.warn().get(measure)), [None, Some(0.5), None, None]);
    }

    #[test]
    fn a_name_that_nobody_has_is_not_found_with_those_that_may_have_been_meant() {
        let policies = Policies::parse(TWO).unwrap();
        let error = policies.find("strickt").unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::NotFound, Some("policy_name")));
        assert_eq!(error.message, "policy_name: no policy is called \"strickt\"; near it: strict");
        let long = policies.find(&"x".repeat(1 << 20)).unwrap_err();
        assert!(long.code == ErrorCode::NotFound && long.message.len() < 200, "{}", long.message);
        let none = Policies::default();
        assert!(none.find("strict").unwrap_err().message.contains("without policies"));
        let error = none.find("").unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidArgument, Some("policy")));
    }

    #[test]
    fn everything_that_is_wrong_in_a_file_is_told() {
        for (text, expected) in [
            ("", "missing field `policies`"),
            ("[policies]", "there is no table [policies.NAME]"),
            ("[policies.a]\nblok = 1", "line 2: unknown field `blok`"),
            ("[policies.a]\nblock = { s = 0.5 }", "unknown field `s`"),
            ("[policies.a]\nblock = { s_prism = \"high\" }", "line 2: "),
            ("[policies.a]\nblock = { s_prism = 0.5 }\non_error = \"pass\"", "line 3: unknown variant `pass`"),
            ("[policies.a]\nblock = { s_prism = 0.5 }\nmin_tokens = -1", "line 3: "),
            ("[policies.a]\nmin_tokens = 3", "policies.a: it has no threshold"),
            ("[policies.\"\"]\nblock = { s_prism = 0.5 }", "a name has from 1 to 64 bytes"),
            (
                "[policies.a]\nblock = { s_prism = 7 }\n[policies.b]\nwarn = { s_prism = nan }",
                "policies.a.block.s_prism: it is 7 and must be a number from 0 to 1; policies.b.warn.s_prism: it is NaN",
            ),
        ] {
            let told = Policies::parse(text).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
