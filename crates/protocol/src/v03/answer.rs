//! Answers that are no task and no message: pages, and the turning of an answer into its 1.0 form.

use super::task::located;
use super::{Out, V03, Write, plain};
use crate::a2a::method::Method;
use crate::a2a::model::{StreamResponse, Task};
use crate::a2a::push::ListPushConfigsResponse;
use crate::a2a::request::{ListTasksResponse, PushConfig};
use crate::wire;
use crate::wire::{Int32, Json};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde_json::Value;

impl Write for ListTasksResponse {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("tasks", &V03(self.tasks.as_slice()))?;
        out.always("nextPageToken", &self.next_page_token)?;
        out.always("pageSize", &self.page_size)?;
        out.always("totalSize", &self.total_size)?;
        out.rest(&Vec::new(), &[])
    }
}

wire! {
    pub struct TaskPageFields {
        tasks: Vec<Json> = "tasks",
        next_page_token: String = "nextPageToken" | "next_page_token",
        page_size: Option<Int32> = "pageSize" | "page_size",
        total_size: Option<Int32> = "totalSize" | "total_size",
    }
}

/// A page, or the bare list that some servers of 0.3 answer with.
impl<'de> Deserialize<'de> for V03<ListTasksResponse> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let page = if json.text().starts_with('[') {
            let tasks = serde_json::from_str(json.text()).map_err(D::Error::custom)?;
            TaskPageFields { tasks, ..TaskPageFields::default() }
        } else {
            serde_json::from_str(json.text()).map_err(D::Error::custom)?
        };
        let tasks: Result<Vec<Task>, _> = page.tasks.iter().map(listed).collect();
        let tasks = tasks.map_err(D::Error::custom)?;
        let count = i32::try_from(tasks.len()).unwrap_or(i32::MAX);
        Ok(Self(ListTasksResponse {
            next_page_token: page.next_page_token,
            page_size: page.page_size.map_or(count, |size| size.0),
            total_size: i64::from(page.total_size.map_or(count, |size| size.0)),
            tasks,
        }))
    }
}

/// A task of a page. One that holds what cannot be read is listed without what it holds, and the others with theirs:
/// whoever wants it asks for it, and is told what is wrong.
fn listed(json: &Json) -> Result<Task, serde_json::Error> {
    let problem = match serde_json::from_str::<V03<Task>>(json.text()) {
        Ok(V03(task)) => return Ok(task),
        Err(problem) => problem,
    };
    let mut task: Value = serde_json::from_str(json.text())?;
    for (within, name) in [("", "history"), ("", "artifacts"), ("/status", "message")] {
        if let Some(object) = task.pointer_mut(within).and_then(Value::as_object_mut) {
            object.remove(name);
        }
    }
    serde_json::from_str::<V03<Task>>(&task.to_string()).map(|V03(task)| task).map_err(|_| problem)
}

/// In 0.3 the configs of a task are a plain list, all of them.
impl Write for ListPushConfigsResponse {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.configs.as_slice().write(serializer)
    }
}

impl<'de> Deserialize<'de> for V03<ListPushConfigsResponse> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let configs = Option::<Vec<V03<PushConfig>>>::deserialize(deserializer)?;
        Ok(Self(ListPushConfigsResponse {
            configs: plain(configs.unwrap_or_default()),
            next_page_token: String::new(),
        }))
    }
}

/// The JSON of an agent's result, or of a frame of its stream, as 1.0 has it.
pub fn upgraded(method: Method, json: &str) -> Result<String, serde_json::Error> {
    fn turned<T: serde::Serialize>(json: &str) -> Result<String, serde_json::Error>
    where
        V03<T>: serde::de::DeserializeOwned,
    {
        serde_json::to_string(&serde_json::from_str::<V03<T>>(json)?.0)
    }
    match method {
        Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask => turned::<StreamResponse>(json),
        Method::GetTask | Method::CancelTask => {
            let task: Task = located("task", json).map_err(serde_json::Error::custom)?;
            serde_json::to_string(&task)
        }
        Method::ListTasks => turned::<ListTasksResponse>(json),
        Method::CreatePushConfig | Method::GetPushConfig => turned::<PushConfig>(json),
        Method::ListPushConfigs => turned::<ListPushConfigsResponse>(json),
        Method::DeletePushConfig => Ok("{}".into()),
        Method::GetExtendedAgentCard => super::card::upgraded(json),
    }
}
