//! MCP servers as an ACP session is given them.

use super::Halt;
use crate::probe::mcp::definition::{Definition, Place};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All that are on. An agent that cannot use one is not started with the others: the owner meant it to have it.
pub fn listed(servers: &BTreeMap<String, Definition>, capabilities: &Value) -> Result<Vec<Value>, Halt> {
    let mut list = Vec::new();
    for (name, definition) in servers {
        match definition {
            Definition::Disabled => {}
            Definition::Stdio(program) => {
                let env = pairs(&program.environment);
                list.push(json!({"name": name, "command": program.command, "args": program.arguments, "env": env}));
            }
            Definition::Http(place) => list.push(remote(name, "http", place, capabilities)?),
            Definition::Sse(place) => list.push(remote(name, "sse", place, capabilities)?),
            Definition::Other(kind) => {
                return Err(Halt::Failed(format!(
                    "the MCP server {name} is of type '{kind}', which ACP does not have"
                )));
            }
            Definition::Wrong(problem) => return Err(Halt::Failed(format!("the MCP server {name}: {problem}"))),
        }
    }
    Ok(list)
}

fn remote(name: &str, kind: &str, place: &Place, capabilities: &Value) -> Result<Value, Halt> {
    if capabilities["mcpCapabilities"][kind] != true {
        return Err(Halt::Failed(format!("the agent uses no MCP servers over {kind}; take {name} out of its servers")));
    }
    Ok(json!({"type": kind, "name": name, "url": place.url, "headers": pairs(&place.headers)}))
}

fn pairs(values: &BTreeMap<String, String>) -> Vec<Value> {
    values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::{Halt, listed};
    use crate::probe::mcp::definition::read;
    use serde_json::{Value, json};

    fn list(servers: Value, capabilities: Value) -> Result<Value, String> {
        let servers = read(&json!({"mcpServers": servers}).to_string(), &[]).unwrap();
        listed(&servers, &capabilities).map(Value::from).map_err(|halt| match halt {
            Halt::Failed(problem) => problem,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn servers_are_written_as_acp_has_them() {
        let servers = json!({
            "a": {"command": "npx", "args": ["x"], "env": {"K": "V"}}, "off": {"command": "x", "disabled": true},
            "web": {"type": "http", "url": "https://x.example", "headers": {"A": "B"}}
        });
        let given = list(servers, json!({"mcpCapabilities": {"http": true}})).unwrap();
        assert_eq!(
            given,
            json!([
                {"name": "a", "command": "npx", "args": ["x"], "env": [{"name": "K", "value": "V"}]},
                {"type": "http", "name": "web", "url": "https://x.example", "headers": [{"name": "A", "value": "B"}]}
            ])
        );
    }

    #[test]
    fn what_cannot_be_used_is_told_by_name() {
        for server in [json!({"url": "https://x"}), json!({"type": "ws"}), json!({"type": "stdio"})] {
            assert!(list(json!({"odd": server}), json!({})).unwrap_err().contains("odd"));
        }
    }
}
