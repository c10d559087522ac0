//! Push configs: 1.0 has one object, 0.3 puts the config beside the task's id, and lists schemes.

use super::{Out, V03, Write, carried};
use crate::a2a::request::{AuthenticationInfo, PushConfig};
use crate::wire;
use crate::wire::{Json, Named as _};
use serde::Deserialize;
use serde::de::Deserializer;
use serde::ser::Serializer;

wire! {
    pub struct AuthenticationFields {
        schemes: Vec<String> = "schemes",
        credentials: String = "credentials",
    }
}

wire! {
    pub struct ConfigFields {
        id: String = "id",
        url: String = "url",
        token: String = "token",
        authentication: Option<AuthenticationFields> = "authentication",
    }
}

wire! {
    pub struct TaskConfigFields {
        tenant: String = "tenant",
        task_id: String = "taskId" | "task_id",
        config: Option<V03<Bare>> = "pushNotificationConfig" | "push_notification_config",
        metadata: Option<Json> = "metadata",
    }
}

/// A config as it stands inside a message's configuration, without the task's id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bare(pub PushConfig);

/// 1.0 has one scheme: the first that is listed.
fn authentication(fields: AuthenticationFields) -> Option<AuthenticationInfo> {
    let AuthenticationFields { schemes, credentials, unknown } = fields;
    let scheme = schemes.into_iter().next().unwrap_or_default();
    let empty = scheme.is_empty() && credentials.is_empty();
    let unknown = carried(unknown, AuthenticationInfo::NAMES);
    (!empty).then_some(AuthenticationInfo { scheme, credentials, unknown })
}

impl<'de> Deserialize<'de> for V03<Bare> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ConfigFields::deserialize(deserializer)?;
        Ok(Self(Bare(PushConfig {
            id: fields.id,
            url: fields.url,
            token: fields.token,
            authentication: fields.authentication.and_then(authentication),
            unknown: carried(fields.unknown, PushConfig::NAMES),
            ..PushConfig::default()
        })))
    }
}

impl Write for Bare {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_bare(&self.0, serializer)
    }
}

/// A config that is only borrowed.
pub(super) struct BareRef<'a>(pub &'a PushConfig);

impl Write for BareRef<'_> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_bare(self.0, serializer)
    }
}

fn write_bare<S: Serializer>(config: &PushConfig, serializer: S) -> Result<S::Ok, S::Error> {
    let mut out = Out::new(serializer)?;
    out.put("id", &config.id)?;
    out.put("url", &config.url)?;
    out.put("token", &config.token)?;
    if let Some(authentication) = &config.authentication {
        out.always("authentication", &V03(authentication))?;
    }
    out.rest(&config.unknown, ConfigFields::NAMES)
}

impl Write for AuthenticationInfo {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        let schemes: &[&str] = if self.scheme.is_empty() { &[] } else { &[&self.scheme] };
        out.always("schemes", schemes)?;
        out.put("credentials", &self.credentials)?;
        out.rest(&self.unknown, AuthenticationFields::NAMES)
    }
}

impl<'de> Deserialize<'de> for V03<PushConfig> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = TaskConfigFields::deserialize(deserializer)?;
        let V03(Bare(config)) = fields.config.unwrap_or_default();
        let mut unknown = config.unknown;
        // What is said about the request counts for the config, unless the config says something itself.
        if let Some(metadata) = fields.metadata
            && !unknown.iter().any(|(name, _)| name == "metadata")
        {
            unknown.push(("metadata".into(), metadata));
        }
        Ok(Self(PushConfig { tenant: fields.tenant, task_id: fields.task_id, unknown, ..config }))
    }
}

impl Write for PushConfig {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("tenant", &self.tenant)?;
        out.always("taskId", &self.task_id)?;
        out.always("pushNotificationConfig", &V03(BareRef(self)))?;
        out.rest(&Vec::new(), &[])
    }
}
