//! Why a request is not judged: a status of its call, or in a stream an error in the place of its result.

use tonic::Status;
use tonic_types::FieldViolation;

use crate::server::{convert, pb, status};
use crate::service::{JudgeError, Lane};

/// What refuses a request.
#[derive(Debug)]
pub enum Refused {
    /// Its fields: at least one.
    Fields(Vec<FieldViolation>),
    /// The judge.
    Judge(JudgeError),
    /// The caller's key, which does not open this lane; and the lanes that it opens.
    Lane(Lane, String),
}

impl Refused {
    /// As an error in the place of a result.
    pub fn error(self) -> pb::JudgeError {
        match self {
            Self::Judge(error) => convert::error(error),
            Self::Lane(lane, lanes) => pb::JudgeError {
                code: pb::ErrorCode::PermissionDenied as i32,
                message: status::wrong_lane(lane, &lanes).message().to_owned(),
                field: "lane".to_owned(),
                retry_after_ms: None,
            },
            Self::Fields(violations) => {
                let field = violations.first().map(|first| first.field.clone()).unwrap_or_default();
                let message = status::invalid(violations).message().to_owned();
                pb::JudgeError { code: pb::ErrorCode::InvalidArgument as i32, message, field, retry_after_ms: None }
            }
        }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Fields(violations) => status::invalid(violations),
            Refused::Judge(error) => status::of_error(&error),
            Refused::Lane(lane, lanes) => status::wrong_lane(lane, &lanes),
        }
    }
}

impl From<JudgeError> for Refused {
    fn from(error: JudgeError) -> Self {
        Self::Judge(error)
    }
}

impl From<Vec<FieldViolation>> for Refused {
    fn from(violations: Vec<FieldViolation>) -> Self {
        Self::Fields(violations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ErrorCode;

    #[test]
    fn an_error_in_a_stream_says_what_the_status_says() {
        let violation = |field: &str| FieldViolation::new(field, "is wrong");
        type Refuse = fn(&dyn Fn(&str) -> FieldViolation) -> Refused;
        let refusals: [Refuse; 4] = [
            |violation| vec![violation("candidate"), violation("lane")].into(),
            |violation| vec![violation("cache")].into(),
            |_| Refused::Lane(Lane::Guard, "train".to_owned()),
            |_| JudgeError::new(ErrorCode::NotFound, "persona_id: nobody").into(),
        ];
        let expected = [
            (pb::ErrorCode::InvalidArgument, "candidate", "candidate: is wrong (and 1 more)"),
            (pb::ErrorCode::InvalidArgument, "cache", "cache: is wrong"),
            (pb::ErrorCode::PermissionDenied, "lane", "lane: this key does not open the guard lane; it opens train"),
            (pb::ErrorCode::NotFound, "", "persona_id: nobody"),
        ];
        for (refuse, (code, field, message)) in refusals.iter().zip(expected) {
            let error = refuse(&violation).error();
            assert_eq!((error.code(), error.field.as_str(), error.message.as_str()), (code, field, message));
            assert_eq!(Status::from(refuse(&violation)).message(), message);
        }
    }
}
