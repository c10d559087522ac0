//! Server reflection: which services there are and how they are described, for clients that know neither.

use crate::app::App;
use flotilla_grpc::DESCRIPTORS;
use futures_util::{Stream, StreamExt as _};
use prost::Message;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use tonic::{Code, Request, Response, Status, Streaming, async_trait};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::server_reflection_server::ServerReflection;
use tonic_reflection::pb::v1::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use tonic_reflection::pb::{v1, v1alpha};

/// A FileDescriptorSet whose files are left as they are written: options we do not know stay in them.
#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// Every file by its name, by each name it defines, and the services.
#[derive(Default)]
struct Index {
    files: Vec<Vec<u8>>,
    by_name: BTreeMap<String, usize>,
    by_symbol: BTreeMap<String, usize>,
    services: Vec<String>,
}

/// Read once, when somebody first asks.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::default();
    let health = tonic_health::pb::FILE_DESCRIPTOR_SET;
    for set in [DESCRIPTORS, health, v1::FILE_DESCRIPTOR_SET, v1alpha::FILE_DESCRIPTOR_SET] {
        for file in Files::decode(set).map(|set| set.file).unwrap_or_default() {
            index.add(file);
        }
    }
    index
});

impl Index {
    fn add(&mut self, bytes: Vec<u8>) {
        let Ok(file) = FileDescriptorProto::decode(bytes.as_slice()) else { return };
        if self.by_name.contains_key(file.name()) {
            return;
        }
        self.by_name.insert(file.name().to_owned(), self.files.len());
        for message in &file.message_type {
            self.message(file.package(), message);
        }
        for choices in &file.enum_type {
            self.choices(file.package(), choices);
        }
        for service in &file.service {
            let name = self.symbol(file.package(), service.name());
            for method in &service.method {
                self.symbol(&name, method.name());
            }
            self.services.push(name);
        }
        self.files.push(bytes);
    }

    /// Notes a name of the file that is being added.
    fn symbol(&mut self, place: &str, name: &str) -> String {
        let full = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        self.by_symbol.insert(full.clone(), self.files.len());
        full
    }

    fn message(&mut self, place: &str, message: &DescriptorProto) {
        let name = self.symbol(place, message.name());
        for field in &message.field {
            self.symbol(&name, field.name());
        }
        for inner in &message.nested_type {
            self.message(&name, inner);
        }
        for choices in &message.enum_type {
            self.choices(&name, choices);
        }
    }

    /// The values of an enum stand beside it, not in it.
    fn choices(&mut self, place: &str, choices: &EnumDescriptorProto) {
        self.symbol(place, choices.name());
        for value in &choices.value {
            self.symbol(place, value.name());
        }
    }

    fn file(&self, found: Option<&usize>) -> Option<MessageResponse> {
        let bytes = self.files.get(*found?)?.clone();
        Some(MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto: vec![bytes] }))
    }

    fn look_up(&self, asked: &MessageRequest) -> Option<MessageResponse> {
        match asked {
            MessageRequest::FileByFilename(name) => self.file(self.by_name.get(name)),
            MessageRequest::FileContainingSymbol(name) => self.file(self.by_symbol.get(name)),
            MessageRequest::FileContainingExtension(_) => None,
            MessageRequest::AllExtensionNumbersOfType(name) => self.by_symbol.contains_key(name).then(|| {
                let none = ExtensionNumberResponse { base_type_name: name.clone(), extension_number: Vec::new() };
                MessageResponse::AllExtensionNumbersResponse(none)
            }),
            MessageRequest::ListServices(_) => {
                let service = self.services.iter().map(|name| ServiceResponse { name: name.clone() }).collect();
                Some(MessageResponse::ListServicesResponse(ListServiceResponse { service }))
            }
        }
    }
}

/// One answer for each question. What is not there is told in the stream, which goes on.
fn answer(asked: ServerReflectionRequest) -> ServerReflectionResponse {
    let error = |code: Code, text: &str| {
        let error_response = ErrorResponse { error_code: code.into(), error_message: text.to_owned() };
        MessageResponse::ErrorResponse(error_response)
    };
    let answered = match &asked.message_request {
        None => error(Code::InvalidArgument, "The request asks for nothing this version knows; ask for list_services."),
        Some(request) => INDEX.look_up(request).unwrap_or_else(|| {
            error(Code::NotFound, "There is nothing of this name here; list_services names the services there are.")
        }),
    };
    let valid_host = asked.host.clone();
    ServerReflectionResponse { valid_host, original_request: Some(asked), message_response: Some(answered) }
}

pub struct Reflection(pub Arc<App>);

#[async_trait]
impl ServerReflection for Reflection {
    type ServerReflectionInfoStream = Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;

    async fn server_reflection_info(
        &self,
        request: Request<Streaming<ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let app = Arc::clone(&self.0);
        let stopped = async move { app.hub.stopped().await };
        let answers = request.into_inner().map(|asked| asked.map(answer)).take_until(Box::pin(stopped));
        Ok(Response::new(Box::pin(answers)))
    }
}
