//! JSON-RPC parameters as requests.

use crate::dialect::Dialect;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::decode::message;
use flotilla_protocol::v03;

/// JSON-RPC knows one form of 0.3.
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
