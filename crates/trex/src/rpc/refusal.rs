//! Why a request is refused, and T-Rex's codes for that.

/// Where to look for what there is.
const OTHERS: &str = "`get_supported_cmds` lists those that there are, and docs/from-trex.md says \
                      what there is in place of others";

/// Why a request is refused. What is printed is what the client's user reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not JSON.
    #[error("{0}")]
    Parse(String),
    /// It is JSON, but no request.
    #[error("not a request: {0}")]
    Invalid(String),
    /// There is no such method.
    #[error("there is no method `{method}` here: {}", instead.unwrap_or(OTHERS))]
    NoMethod {
        /// What was asked for, shortened.
        method: String,
        /// What to do instead, if T-Rex has it.
        instead: Option<&'static str>,
    },
    /// Its parameters are wrong.
    #[error("{0}")]
    Params(String),
    /// It cannot be done, or not now.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// Not a request, because of this.
    pub fn invalid(why: &str) -> Self {
        Self::Invalid(why.to_owned())
    }

    /// A request of more bytes than that.
    pub fn too_large(most: usize) -> Self {
        Self::Invalid(format!("it has more than {most} bytes"))
    }

    /// A request among more than are answered at once.
    pub fn too_much() -> Self {
        let why = "too much is asked at once; ask in smaller parts";
        Self::Failed(why.to_owned())
    }

    /// The code in the answer.
    pub fn code(&self) -> i32 {
        match self {
            Self::Parse(_) => -32_700,
            Self::Invalid(_) => -32_600,
            Self::NoMethod { .. } => -32_601,
            Self::Params(_) => -32_602,
            Self::Failed(_) => -32_000,
        }
    }

    /// What the code means.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parse(_) => "Parse error",
            Self::Invalid(_) => "Invalid Request",
            Self::NoMethod { .. } => "Method not found",
            Self::Params(_) => "Invalid params",
            Self::Failed(_) => "Server error",
        }
    }
}

impl From<session::Error> for Refusal {
    fn from(error: session::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
