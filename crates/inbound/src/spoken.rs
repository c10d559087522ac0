//! What is answered, written in the dialect it was asked for in.

use crate::dialect::Dialect;
use flotilla_protocol::a2a::model::{StreamResponse, Task};
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::{ListTasksResponse, PushConfig};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::json::Proto;
use flotilla_protocol::v03::{Form, V03};
use serde::Serialize;
use serde_json::Error;

/// Something every dialect has a form for.
pub trait Spoken {
    fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error>;
}

macro_rules! spoken {
    ($($ty:ty),*) => {
        $(impl Spoken for $ty {
            fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error> {
                match dialect {
                    Dialect::V10 => serde_json::to_writer(out, self),
                    Dialect::V03(Form::Kind) => serde_json::to_writer(out, &V03(self)),
                    Dialect::V03(Form::Proto) => serde_json::to_writer(out, &Proto(self, Files::Text)),
                    Dialect::V03(Form::ProtoBytes) => serde_json::to_writer(out, &Proto(self, Files::Bytes)),
                }
            }
        })*
    };
}

spoken!(Task, StreamResponse, PushConfig, ListPushConfigsResponse);

/// The proto file of 0.3 has no pages of tasks; this is what there would be, had it any.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    tasks: Vec<Proto<'a, Task>>,
    next_page_token: &'a str,
    page_size: i32,
    total_size: i64,
}

impl Spoken for ListTasksResponse {
    fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error> {
        match dialect {
            Dialect::V10 => serde_json::to_writer(out, self),
            Dialect::V03(Form::Kind) => serde_json::to_writer(out, &V03(self)),
            Dialect::V03(form @ (Form::Proto | Form::ProtoBytes)) => {
                let files = if form == Form::Proto { Files::Text } else { Files::Bytes };
                let page = Page {
                    tasks: self.tasks.iter().map(|task| Proto(task, files)).collect(),
                    next_page_token: &self.next_page_token,
                    page_size: self.page_size,
                    total_size: self.total_size,
                };
                serde_json::to_writer(out, &page)
            }
        }
    }
}
