//! The form of cards for readers who name no version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CardForm {
    /// Every member of both versions, which readers of either understand unless they refuse members they do not know.
    #[serde(rename = "hybrid")]
    Hybrid,
    #[serde(rename = "1.0")]
    V10,
    #[serde(rename = "0.3")]
    V03,
}

impl From<CardForm> for flotilla_inbound::CardForm {
    fn from(form: CardForm) -> Self {
        match form {
            CardForm::Hybrid => Self::Hybrid,
            CardForm::V10 => Self::V10,
            CardForm::V03 => Self::V03,
        }
    }
}
