//! JSON-RPC parameters as requests.

use crate::dialect::Dialect;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::decode::message;
use flotilla_protocol::v03::{self, Form, bare};

/// Which form of 0.3 it is. What holds no message shows it only by its id: null is what nobody else calls a request.
pub fn dialect(dialect: Dialect, method: &str, id: &str, params: &str) -> Dialect {
    let is_bare = || match method {
        "message/send" | "message/stream" => bare::shows(params),
        _ => id == "null",
    };
    if dialect == Dialect::V03(Form::Kind) && is_bare() { Dialect::V03(Form::Bare) } else { dialect }
}

/// Both forms of 0.3 that JSON-RPC has are read by the same reader.
pub fn request(dialect: Dialect, method: Method, params: &str) -> Result<Request, Refusal> {
    match dialect {
        Dialect::V10 => current(method, params),
        Dialect::V03(_) => v03::request::read(method, params.as_bytes()),
    }
}

fn current(method: Method, params: &str) -> Result<Request, Refusal> {
    let params = params.as_bytes();
    Ok(match method {
        Method::SendMessage => Request::SendMessage(message(params)?),
        Method::SendStreamingMessage => Request::SendStreamingMessage(message(params)?),
        Method::GetTask => Request::GetTask(message(params)?),
        Method::ListTasks => Request::ListTasks(message(params)?),
        Method::CancelTask => Request::CancelTask(message(params)?),
        Method::SubscribeToTask => Request::SubscribeToTask(message(params)?),
        Method::CreatePushConfig => Request::CreatePushConfig(message(params)?),
        Method::GetPushConfig => Request::GetPushConfig(message(params)?),
        Method::ListPushConfigs => Request::ListPushConfigs(message(params)?),
        Method::DeletePushConfig => Request::DeletePushConfig(message(params)?),
        Method::GetExtendedAgentCard => Request::GetExtendedAgentCard(message(params)?),
    })
}
