//! JSON-RPC methods and parameters as requests.

use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::decode::message;

pub fn method(name: &str) -> Result<Method, Refusal> {
    Method::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Method::ALL.into_iter().map(Method::name).collect();
        let shown: String = name.chars().take(80).collect();
        let text = format!("There is no method '{shown}'. A2A 1.0 has: {}.", known.join(", "));
        Refusal::new(Reason::MethodNotFound, text)
    })
}

pub fn request(method: Method, params: &str) -> Result<Request, Refusal> {
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
