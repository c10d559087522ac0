//! Generated from `proto/a2a/v1/a2a.proto` by `cargo run -q -p xtask -- proto`; not edited by hand.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Task {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    pub artifacts: ::prost::alloc::vec::Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    pub history: ::prost::alloc::vec::Vec<Message>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatus {
    #[prost(enumeration = "TaskState", tag = "1")]
    pub state: i32,
    #[prost(message, optional, tag = "2")]
    pub update: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub timestamp: ::core::option::Option<::prost_types::Timestamp>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Part {
    /// In the SDKs, not in the published file.
    #[prost(message, optional, tag = "4")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
    #[prost(oneof = "part::Part", tags = "1, 2, 3")]
    pub part: ::core::option::Option<part::Part>,
}
/// Nested message and enum types in `Part`.
pub mod part {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Part {
        #[prost(string, tag = "1")]
        Text(::prost::alloc::string::String),
        #[prost(message, tag = "2")]
        File(super::FilePart),
        #[prost(message, tag = "3")]
        Data(super::DataPart),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FilePart {
    #[prost(string, tag = "3")]
    pub mime_type: ::prost::alloc::string::String,
    /// In the SDKs, not in the published file.
    #[prost(string, tag = "4")]
    pub name: ::prost::alloc::string::String,
    #[prost(oneof = "file_part::File", tags = "1, 2")]
    pub file: ::core::option::Option<file_part::File>,
}
/// Nested message and enum types in `FilePart`.
pub mod file_part {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum File {
        #[prost(string, tag = "1")]
        FileWithUri(::prost::alloc::string::String),
        /// The SDKs put the base64 text here, not the bytes it stands for.
        #[prost(bytes, tag = "2")]
        FileWithBytes(::prost::alloc::vec::Vec<u8>),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DataPart {
    #[prost(message, optional, tag = "1")]
    pub data: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Message {
    #[prost(string, tag = "1")]
    pub message_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(enumeration = "Role", tag = "4")]
    pub role: i32,
    #[prost(message, repeated, tag = "5")]
    pub content: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    pub artifact_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "5")]
    pub parts: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatusUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(bool, tag = "4")]
    pub r#final: bool,
    #[prost(message, optional, tag = "5")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskArtifactUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub artifact: ::core::option::Option<Artifact>,
    #[prost(bool, tag = "4")]
    pub append: bool,
    #[prost(bool, tag = "5")]
    pub last_chunk: bool,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PushNotificationConfig {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub token: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "4")]
    pub authentication: ::core::option::Option<AuthenticationInfo>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AuthenticationInfo {
    #[prost(string, repeated, tag = "1")]
    pub schemes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, tag = "2")]
    pub credentials: ::prost::alloc::string::String,
}
/// Named `tasks/{id}/pushNotificationConfigs/{id}`.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TaskPushNotificationConfig {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub push_notification_config: ::core::option::Option<PushNotificationConfig>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCard {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub url: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "4")]
    pub provider: ::core::option::Option<AgentProvider>,
    #[prost(string, tag = "5")]
    pub version: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub documentation_url: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    pub capabilities: ::core::option::Option<AgentCapabilities>,
    #[prost(map = "string, message", tag = "8")]
    pub security_schemes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        SecurityScheme,
    >,
    #[prost(message, repeated, tag = "9")]
    pub security: ::prost::alloc::vec::Vec<Security>,
    #[prost(string, repeated, tag = "10")]
    pub default_input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "11")]
    pub default_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "12")]
    pub skills: ::prost::alloc::vec::Vec<AgentSkill>,
    #[prost(bool, tag = "13")]
    pub supports_authenticated_extended_card: bool,
    #[prost(string, tag = "14")]
    pub preferred_transport: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "15")]
    pub additional_interfaces: ::prost::alloc::vec::Vec<AgentInterface>,
    #[prost(string, tag = "16")]
    pub protocol_version: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "17")]
    pub signatures: ::prost::alloc::vec::Vec<AgentCardSignature>,
    /// In the SDKs, not in the published file.
    #[prost(string, tag = "18")]
    pub icon_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentInterface {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub transport: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentProvider {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub organization: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCapabilities {
    #[prost(bool, tag = "1")]
    pub streaming: bool,
    #[prost(bool, tag = "2")]
    pub push_notifications: bool,
    #[prost(message, repeated, tag = "3")]
    pub extensions: ::prost::alloc::vec::Vec<AgentExtension>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentExtension {
    #[prost(string, tag = "1")]
    pub uri: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(bool, tag = "3")]
    pub required: bool,
    #[prost(message, optional, tag = "4")]
    pub params: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentSkill {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "4")]
    pub tags: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "5")]
    pub examples: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "6")]
    pub input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "7")]
    pub output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "8")]
    pub security: ::prost::alloc::vec::Vec<Security>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCardSignature {
    #[prost(string, tag = "1")]
    pub protected: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub signature: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub header: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub list: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Security {
    #[prost(map = "string, message", tag = "1")]
    pub schemes: ::std::collections::HashMap<::prost::alloc::string::String, StringList>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SecurityScheme {
    #[prost(oneof = "security_scheme::Scheme", tags = "1, 2, 3, 4, 5")]
    pub scheme: ::core::option::Option<security_scheme::Scheme>,
}
/// Nested message and enum types in `SecurityScheme`.
pub mod security_scheme {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Scheme {
        #[prost(message, tag = "1")]
        ApiKeySecurityScheme(super::ApiKeySecurityScheme),
        #[prost(message, tag = "2")]
        HttpAuthSecurityScheme(super::HttpAuthSecurityScheme),
        #[prost(message, tag = "3")]
        Oauth2SecurityScheme(super::OAuth2SecurityScheme),
        #[prost(message, tag = "4")]
        OpenIdConnectSecurityScheme(super::OpenIdConnectSecurityScheme),
        #[prost(message, tag = "5")]
        MtlsSecurityScheme(super::MutualTlsSecurityScheme),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ApiKeySecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub location: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HttpAuthSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub scheme: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub bearer_format: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuth2SecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub flows: ::core::option::Option<OAuthFlows>,
    #[prost(string, tag = "3")]
    pub oauth2_metadata_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct OpenIdConnectSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub open_id_connect_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MutualTlsSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuthFlows {
    #[prost(oneof = "o_auth_flows::Flow", tags = "1, 2, 3, 4")]
    pub flow: ::core::option::Option<o_auth_flows::Flow>,
}
/// Nested message and enum types in `OAuthFlows`.
pub mod o_auth_flows {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Flow {
        #[prost(message, tag = "1")]
        AuthorizationCode(super::AuthorizationCodeOAuthFlow),
        #[prost(message, tag = "2")]
        ClientCredentials(super::ClientCredentialsOAuthFlow),
        #[prost(message, tag = "3")]
        Implicit(super::ImplicitOAuthFlow),
        #[prost(message, tag = "4")]
        Password(super::PasswordOAuthFlow),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AuthorizationCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "4")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientCredentialsOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ImplicitOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PasswordOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "3")]
    pub scopes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SendMessageConfiguration {
    #[prost(string, repeated, tag = "1")]
    pub accepted_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "2")]
    pub push_notification: ::core::option::Option<PushNotificationConfig>,
    /// 0 asks for all of it.
    #[prost(int32, tag = "3")]
    pub history_length: i32,
    #[prost(bool, tag = "4")]
    pub blocking: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageRequest {
    #[prost(message, optional, tag = "1")]
    pub request: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "2")]
    pub configuration: ::core::option::Option<SendMessageConfiguration>,
    #[prost(message, optional, tag = "3")]
    pub metadata: ::core::option::Option<::prost_types::Struct>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub history_length: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CancelTaskRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TaskSubscriptionRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub config_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub config: ::core::option::Option<TaskPushNotificationConfig>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListTaskPushNotificationConfigResponse {
    #[prost(message, repeated, tag = "1")]
    pub configs: ::prost::alloc::vec::Vec<TaskPushNotificationConfig>,
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetAgentCardRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageResponse {
    #[prost(oneof = "send_message_response::Payload", tags = "1, 2")]
    pub payload: ::core::option::Option<send_message_response::Payload>,
}
/// Nested message and enum types in `SendMessageResponse`.
pub mod send_message_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Msg(super::Message),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StreamResponse {
    #[prost(oneof = "stream_response::Payload", tags = "1, 2, 3, 4")]
    pub payload: ::core::option::Option<stream_response::Payload>,
}
/// Nested message and enum types in `StreamResponse`.
pub mod stream_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Msg(super::Message),
        #[prost(message, tag = "3")]
        StatusUpdate(super::TaskStatusUpdateEvent),
        #[prost(message, tag = "4")]
        ArtifactUpdate(super::TaskArtifactUpdateEvent),
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum TaskState {
    Unspecified = 0,
    Submitted = 1,
    Working = 2,
    Completed = 3,
    Failed = 4,
    Cancelled = 5,
    InputRequired = 6,
    Rejected = 7,
    AuthRequired = 8,
}
impl TaskState {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "TASK_STATE_UNSPECIFIED",
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Cancelled => "TASK_STATE_CANCELLED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TASK_STATE_UNSPECIFIED" => Some(Self::Unspecified),
            "TASK_STATE_SUBMITTED" => Some(Self::Submitted),
            "TASK_STATE_WORKING" => Some(Self::Working),
            "TASK_STATE_COMPLETED" => Some(Self::Completed),
            "TASK_STATE_FAILED" => Some(Self::Failed),
            "TASK_STATE_CANCELLED" => Some(Self::Cancelled),
            "TASK_STATE_INPUT_REQUIRED" => Some(Self::InputRequired),
            "TASK_STATE_REJECTED" => Some(Self::Rejected),
            "TASK_STATE_AUTH_REQUIRED" => Some(Self::AuthRequired),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Role {
    Unspecified = 0,
    User = 1,
    Agent = 2,
}
impl Role {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ROLE_UNSPECIFIED",
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ROLE_UNSPECIFIED" => Some(Self::Unspecified),
            "ROLE_USER" => Some(Self::User),
            "ROLE_AGENT" => Some(Self::Agent),
            _ => None,
        }
    }
}
/// Generated client implementations.
pub mod a2a_service_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    #[derive(Debug, Clone)]
    pub struct A2aServiceClient<T> {
        inner: tonic::client::Grpc<T>,
    }
    impl<T> A2aServiceClient<T>
    where
        T: tonic::client::GrpcService<tonic::body::Body>,
        T::Error: Into<StdError>,
        T::ResponseBody: Body<Data = Bytes> + std::marker::Send + 'static,
        <T::ResponseBody as Body>::Error: Into<StdError> + std::marker::Send,
    {
        pub fn new(inner: T) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: T, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        pub fn with_interceptor<F>(
            inner: T,
            interceptor: F,
        ) -> A2aServiceClient<InterceptedService<T, F>>
        where
            F: tonic::service::Interceptor,
            T::ResponseBody: Default,
            T: tonic::codegen::Service<
                http::Request<tonic::body::Body>,
                Response = http::Response<
                    <T as tonic::client::GrpcService<tonic::body::Body>>::ResponseBody,
                >,
            >,
            <T as tonic::codegen::Service<
                http::Request<tonic::body::Body>,
            >>::Error: Into<StdError> + std::marker::Send + std::marker::Sync,
        {
            A2aServiceClient::new(InterceptedService::new(inner, interceptor))
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        pub async fn send_message(
            &mut self,
            request: impl tonic::IntoRequest<super::SendMessageRequest>,
        ) -> std::result::Result<
            tonic::Response<super::SendMessageResponse>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/SendMessage",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("a2a.v1.A2AService", "SendMessage"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn send_streaming_message(
            &mut self,
            request: impl tonic::IntoRequest<super::SendMessageRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::StreamResponse>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/SendStreamingMessage",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("a2a.v1.A2AService", "SendStreamingMessage"));
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn get_task(
            &mut self,
            request: impl tonic::IntoRequest<super::GetTaskRequest>,
        ) -> std::result::Result<tonic::Response<super::Task>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/GetTask",
            );
            let mut req = request.into_request();
            req.extensions_mut().insert(GrpcMethod::new("a2a.v1.A2AService", "GetTask"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn cancel_task(
            &mut self,
            request: impl tonic::IntoRequest<super::CancelTaskRequest>,
        ) -> std::result::Result<tonic::Response<super::Task>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/CancelTask",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("a2a.v1.A2AService", "CancelTask"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn task_subscription(
            &mut self,
            request: impl tonic::IntoRequest<super::TaskSubscriptionRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::StreamResponse>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/TaskSubscription",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("a2a.v1.A2AService", "TaskSubscription"));
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn create_task_push_notification_config(
            &mut self,
            request: impl tonic::IntoRequest<
                super::CreateTaskPushNotificationConfigRequest,
            >,
        ) -> std::result::Result<
            tonic::Response<super::TaskPushNotificationConfig>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/CreateTaskPushNotificationConfig",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(
                    GrpcMethod::new(
                        "a2a.v1.A2AService",
                        "CreateTaskPushNotificationConfig",
                    ),
                );
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_task_push_notification_config(
            &mut self,
            request: impl tonic::IntoRequest<super::GetTaskPushNotificationConfigRequest>,
        ) -> std::result::Result<
            tonic::Response<super::TaskPushNotificationConfig>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/GetTaskPushNotificationConfig",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(
                    GrpcMethod::new("a2a.v1.A2AService", "GetTaskPushNotificationConfig"),
                );
            self.inner.unary(req, path, codec).await
        }
        pub async fn list_task_push_notification_config(
            &mut self,
            request: impl tonic::IntoRequest<
                super::ListTaskPushNotificationConfigRequest,
            >,
        ) -> std::result::Result<
            tonic::Response<super::ListTaskPushNotificationConfigResponse>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/ListTaskPushNotificationConfig",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(
                    GrpcMethod::new(
                        "a2a.v1.A2AService",
                        "ListTaskPushNotificationConfig",
                    ),
                );
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_agent_card(
            &mut self,
            request: impl tonic::IntoRequest<super::GetAgentCardRequest>,
        ) -> std::result::Result<tonic::Response<super::AgentCard>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/GetAgentCard",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("a2a.v1.A2AService", "GetAgentCard"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn delete_task_push_notification_config(
            &mut self,
            request: impl tonic::IntoRequest<
                super::DeleteTaskPushNotificationConfigRequest,
            >,
        ) -> std::result::Result<tonic::Response<()>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/a2a.v1.A2AService/DeleteTaskPushNotificationConfig",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(
                    GrpcMethod::new(
                        "a2a.v1.A2AService",
                        "DeleteTaskPushNotificationConfig",
                    ),
                );
            self.inner.unary(req, path, codec).await
        }
    }
}
