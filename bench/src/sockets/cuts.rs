//! Connections cut at random under load: every task must come to its end, and a run that comes twice must say so.

use super::agent::{Agent, answer};
use super::hub::Hub;
use anyhow::{Result, ensure};
use flotilla_bench::load::http::Connection;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const NAME: &str = "cut";
/// Tasks for each cut.
const EACH: usize = 10;

pub async fn run(hub: &Hub, cuts: usize) -> Result<()> {
    let tasks = cuts * EACH;
    drop(Agent::open(&hub.address, &hub.agent_key, NAME, None).await?);
    let requests: Vec<Vec<u8>> = (0..tasks).map(|number| hub.request(NAME, 1_000_000 + number)).collect();
    let address = hub.address.clone();
    let sending = tokio::spawn(async move {
        let mut connection = Connection::open(&address).await?;
        let (mut body, mut ids) = (Vec::new(), Vec::new());
        for request in requests {
            body.clear();
            let status = connection.call(&request, &mut body).await?;
            ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
            let answer: Value = serde_json::from_slice(&body)?;
            ids.push(answer["task"]["id"].as_str().unwrap_or_default().to_owned());
        }
        Ok(ids)
    });
    let (done, again) = work(hub, cuts, tasks).await?;
    let ids = sending.await??;
    let mut lost = 0;
    for id in &ids {
        let task = hub.task(NAME, id).await?;
        let whole = task["artifacts"].as_array().is_some_and(|artifacts| artifacts.len() == 1);
        lost += usize::from(task["status"]["state"] != "TASK_STATE_COMPLETED" || !whole);
    }
    let came = format!("{tasks} tasks, {lost} lost, {done} runs, {again} sent again and said to be");
    println!("{cuts} cuts at random: {came} (asked: none lost, no duplicate unsaid)");
    ensure!(lost == 0 && done == tasks, "tasks were lost, or run twice");
    Ok(())
}

/// An agent that keeps what was not acknowledged. How many runs it did, and how many came again.
async fn work(hub: &Hub, cuts: usize, tasks: usize) -> Result<(usize, usize)> {
    let (mut done, mut again, mut made) = (HashSet::new(), 0, 0);
    let (mut token, mut unsure): (Option<String>, HashMap<String, Value>) = (None, HashMap::new());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    while done.len() < tasks || !unsure.is_empty() {
        let mut agent = Agent::open(&hub.address, &hub.agent_key, NAME, token.as_deref()).await?;
        token = Some(agent.token.clone());
        for frame in unsure.values() {
            agent.send(frame).await?;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let frames = if made < cuts { random % (2 * EACH as u64) } else { u64::MAX };
        made += 1;
        for _ in 0..frames {
            if done.len() == tasks && unsure.is_empty() {
                break;
            }
            // Whoever waits for more than there is has been told all.
            let Ok(frame) = tokio::time::timeout(Duration::from_secs(20), agent.frame()).await else { break };
            let frame = frame?;
            let id = frame["taskId"].as_str().unwrap_or_default().to_owned();
            if frame["type"] == "ack" {
                unsure.remove(&id);
            } else if frame["type"] == "message" {
                if !done.insert((id.clone(), frame["run"].as_u64())) {
                    ensure!(frame["attempt"].as_u64() > Some(1), "a duplicate that does not say so: {frame}");
                    again += 1;
                }
                agent.answer(&frame).await?;
                unsure.insert(id, answer(&frame));
            }
        }
    }
    Ok((done.len(), again))
}
