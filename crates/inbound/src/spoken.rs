//! What is answered, written in the dialect it was asked for in.

use crate::dialect::Dialect;
use flotilla_protocol::a2a::model::{StreamResponse, Task};
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::{ListTasksResponse, PushConfig};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::json::Proto;
use flotilla_protocol::v03::bare::Bare;
use flotilla_protocol::v03::{Form, V03};
use serde::Serialize;
use serde_json::Error;

/// Something every dialect has a form for.
pub trait Spoken {
    fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error>;
}

macro_rules! spoken {
    ($($ty:ty as $bare:ident),*) => {
        $(impl Spoken for $ty {
            fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error> {
                match dialect {
                    Dialect::V10 => serde_json::to_writer(out, self),
                    Dialect::V03(Form::Kind) => serde_json::to_writer(out, &V03(self)),
                    Dialect::V03(Form::Bare) => serde_json::to_writer(out, &$bare(self)),
                    Dialect::V03(Form::Proto) => serde_json::to_writer(out, &Proto(self, Files::Text)),
                    Dialect::V03(Form::ProtoBytes) => serde_json::to_writer(out, &Proto(self, Files::Bytes)),
                }
            }
        })*
    };
}

// Nobody is known to ask for push configs without kinds, and they have none.
spoken!(Task as Bare, StreamResponse as Bare, PushConfig as V03, ListPushConfigsResponse as V03);

/// Neither form has pages of tasks; this is what there would be, had they any.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a, T> {
    tasks: Vec<T>,
    next_page_token: &'a str,
    page_size: i32,
    total_size: i64,
}

impl Spoken for ListTasksResponse {
    fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), Error> {
        match dialect {
            Dialect::V10 => serde_json::to_writer(out, self),
            Dialect::V03(Form::Kind) => serde_json::to_writer(out, &V03(self)),
            Dialect::V03(Form::Bare) => serde_json::to_writer(out, &page(self, self.tasks.iter().map(Bare).collect())),
            Dialect::V03(form @ (Form::Proto | Form::ProtoBytes)) => {
                let files = if form == Form::Proto { Files::Text } else { Files::Bytes };
                let tasks = self.tasks.iter().map(|task| Proto(task, files)).collect();
                serde_json::to_writer(out, &page(self, tasks))
            }
        }
    }
}

fn page<T>(list: &ListTasksResponse, tasks: Vec<T>) -> Page<'_, T> {
    Page { tasks, next_page_token: &list.next_page_token, page_size: list.page_size, total_size: list.total_size }
}
