// The matrix with the JavaScript SDK of A2A 0.3 as the client; the cells are in ../matrix.
// This SDK has no receiver of webhooks and its types are gone at run time: their bodies are looked at as JSON.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import grpc from '@grpc/grpc-js';
import { KEY, URL, cells } from '../matrix/cells.js';
import { eventOf, taskOf } from '../matrix/plain.js';

/** A fetch with more headers. */
const fetchWith = (more) => (url, init = {}) => {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(more)) headers.set(name, value);
  return fetch(url, { ...init, headers });
};

/** gRPC has no headers and no path: the key and the agent's name go into the metadata of every call. */
function grpcTransport(agent) {
  const told = (options, next) => new grpc.InterceptingCall(next(options), {
    start(metadata, listener, start) {
      metadata.set('authorization', `Bearer ${KEY}`);
      metadata.set('agent-name', agent);
      start(metadata, listener);
    },
  });
  return new GrpcTransportFactory({
    grpcChannelCredentials: grpc.credentials.createInsecure(),
    grpcCallOptions: { interceptors: [told] },
  });
}

async function connect(agent, binding) {
  // Below an agent the hub shows its card in the form of 1.0, unless it is asked for another.
  const resolver = new DefaultAgentCardResolver({ fetchImpl: fetchWith({ 'A2A-Version': '0.3' }) });
  // Clients of 0.3 name no agent over gRPC, so only the hub's own card lists it. This client adds `agent-name`.
  const card = await resolver.resolve(binding === 'GRPC' ? `${URL}/` : `${URL}/agents/${agent}/`);
  const fetchImpl = fetchWith({ Authorization: `Bearer ${KEY}` });
  const transport = {
    'JSONRPC': () => new JsonRpcTransportFactory({ fetchImpl }),
    'HTTP+JSON': () => new RestTransportFactory({ fetchImpl }),
    'GRPC': () => grpcTransport(agent),
  }[binding]();
  return new Client(await new ClientFactory({ transports: [transport] }).createFromAgentCard(card), binding);
}

function partIn03({ text, data, raw, url, filename: name, mediaType: mimeType }) {
  if (text !== undefined) return { kind: 'text', text };
  if (data !== undefined) return { kind: 'data', data };
  return { kind: 'file', file: { name, mimeType, ...(raw ? { bytes: raw.toString('base64') } : { uri: url }) } };
}

// What this SDK loses by itself (../README.md).
const LOSSES = {
  'JSONRPC': [],
  'HTTP+JSON': ['append', 'filename', 'metadata'],
  'GRPC': ['append', 'filename', 'metadata', 'null'],
};

class Client {
  saysFinal = true;
  pushesTasks = true;

  constructor(client, binding) {
    this.client = client;
    this.loses = new Set(LOSSES[binding]);
  }

  params(parts, { wait = true, hook, ...message }) {
    const said = { kind: 'message', messageId: randomUUID(), role: 'user', parts: parts.map(partIn03), ...message };
    return { message: said, configuration: { blocking: wait, pushNotificationConfig: hook } };
  }

  async send(parts, how = {}) {
    const task = await this.client.sendMessage(this.params(parts, how));
    assert.equal(task.kind, 'task');
    return taskOf(task);
  }

  async stream(parts, how = {}) {
    const events = [];
    for await (const event of this.client.sendMessageStream(this.params(parts, how))) events.push(eventOf(event));
    return events;
  }

  async get(id) {
    return taskOf(await this.client.getTask({ id }));
  }

  async cancel(id) {
    return taskOf(await this.client.cancelTask({ id }));
  }

  async setHook(taskId, hook) {
    const made = await this.client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: hook });
    const { id, url } = made.pushNotificationConfig;
    return { id, url };
  }

  async getHook(taskId, id) {
    const found = await this.client.getTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: id });
    return { id: found.pushNotificationConfig.id, url: found.pushNotificationConfig.url };
  }

  webhook(body) {
    const task = JSON.parse(body);
    assert.equal(task.kind, 'task');
    return eventOf(task);
  }
}

cells('@a2a-js/sdk 0.3', connect);
