// The matrix with the JavaScript SDK of A2A 1.0 as the client; the cells are in ../matrix.
import { randomUUID } from 'node:crypto';
import {
  CancelTaskRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { cells } from '../matrix/cells.js';
import { eventOf, taskOf } from '../matrix/plain.js';
import { connect } from './talk.js';

class Client {
  saysFinal = false;
  pushesTasks = false;
  loses = new Set();

  constructor(client) {
    this.client = client;
  }

  request(parts, { wait = true, hook, ...message }) {
    const said = { messageId: randomUUID(), role: 'ROLE_USER', ...message };
    said.parts = parts.map((part) => (part.raw ? { ...part, raw: part.raw.toString('base64') } : part));
    const configuration = { returnImmediately: !wait, taskPushNotificationConfig: hook };
    return SendMessageRequest.fromJSON({ message: said, configuration });
  }

  async send(parts, how = {}) {
    return taskOf(Task.toJSON(await this.client.sendMessage(this.request(parts, how))));
  }

  async stream(parts, how = {}) {
    const events = [];
    for await (const event of this.client.sendMessageStream(this.request(parts, how))) {
      events.push(eventOf(StreamResponse.toJSON(event)));
    }
    return events;
  }

  async get(id) {
    return taskOf(Task.toJSON(await this.client.getTask(GetTaskRequest.fromJSON({ id }))));
  }

  async cancel(id) {
    return taskOf(Task.toJSON(await this.client.cancelTask(CancelTaskRequest.fromJSON({ id }))));
  }

  async setHook(taskId, hook) {
    const config = TaskPushNotificationConfig.fromJSON({ taskId, ...hook });
    const { id, url } = await this.client.createTaskPushNotificationConfig(config);
    return { id, url };
  }

  async getHook(taskId, id) {
    const which = GetTaskPushNotificationConfigRequest.fromJSON({ taskId, id });
    const { url } = await this.client.getTaskPushNotificationConfig(which);
    return { id, url };
  }

  webhook(body) {
    return eventOf(StreamResponse.toJSON(StreamResponse.fromJSON(JSON.parse(body))));
  }
}

cells('@a2a-js/sdk 1.x', async (agent, binding) => new Client((await connect(agent, { binding })).client));
