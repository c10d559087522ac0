// A remote agent of the matrix on the JavaScript SDK of A2A 1.0, over its three bindings: does what ../matrix/README.md
// says. `node peer.js [PORT]` prints its URL, serves, and ends when its standard input does.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Part, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';

const text = (words) => Part.fromJSON({ text: words });
const data = (value) => Part.fromJSON({ data: value });
const FILES = [
  { text: 'a text', mediaType: 'text/markdown', metadata: { kind: 'note' } },
  { raw: 'AAEC/w==', filename: 'blob.bin', mediaType: 'application/octet-stream' },
  { url: 'https://example.com/a.png', filename: 'a.png', mediaType: 'image/png' },
  { data: { nested: { list: [1, 2.5, 'three', null, true] } } },
].map(Part.fromJSON);

const canceled = new Set();
const running = new Map();

/** Does what the first word of the message says. */
class Peer {
  async execute({ taskId, contextId, userMessage, task }, bus) {
    const words = String(userMessage.parts[0]?.content?.value).split(' ');
    const say = (parts) => ({
      messageId: randomUUID(), role: 2, parts, taskId, contextId, extensions: [], referenceTaskIds: [], metadata: undefined,
    });
    if (words[0] === 'direct') {
      const parts = [text(`You said ${words.join(' ')}`), data({ direct: true })];
      bus.publish(AgentEvent.message({ ...say(parts), messageId: `answer-${userMessage.messageId}`, taskId: '' }));
      return bus.finished();
    }
    const status = (state, words) => ({
      state: TaskState[`TASK_STATE_${state}`], message: words && say([text(words)]), timestamp: new Date().toISOString(),
    });
    const update = (state, words) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, words), metadata: undefined }));
    const artifact = (artifactId, parts, append = false, lastChunk = true) => bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append, lastChunk, metadata: undefined,
      artifact: { artifactId, name: artifactId, description: '', parts, metadata: undefined, extensions: [] },
    }));
    // The SDK wants the task first, on every turn.
    const fresh = { id: taskId, contextId, artifacts: [], history: [userMessage] };
    bus.publish(AgentEvent.task({ ...(task ?? fresh), status: status('SUBMITTED') }));
    running.set(taskId, { words, update });
    const said = new Set([...(task?.history ?? []), userMessage].filter((m) => m.role === 1).map((m) => m.messageId));
    await this.obey(words, said.size, userMessage, { update, artifact, going: () => running.has(taskId) });
    running.delete(taskId);
    bus.finished();
  }

  async obey(words, turn, message, { update, artifact, going }) {
    switch (words[0]) {
      case 'stream':
        update('WORKING', 'Streaming');
        for (const chunk of ['one ', 'two ', 'three']) artifact('story', [text(chunk)], chunk !== 'one ', chunk === 'three');
        return update('COMPLETED', 'Streamed');
      case 'drip': // a chunk every so often, for tests that cut in
        update('WORKING', 'Dripping');
        for (let n = 0; n < +words[1]; n++) {
          artifact('drip', [text(`${n} `)], n > 0, false);
          await pause(1000 * +words[2]);
        }
        return update('COMPLETED', 'Dripped');
      case 'slow':
        update('WORKING', 'Taking my time');
        await pause(1000 * +words[1]);
        artifact('result', [text('At last')]);
        return update('COMPLETED', 'Done');
      case 'hold':
        update('WORKING', 'Holding');
        while (going()) await pause(20);
        return undefined;
      case 'canceled':
        artifact('canceled', [text(canceled.has(words[1]) ? 'yes' : 'no')]);
        return update('COMPLETED');
      case 'order':
        return update('INPUT_REQUIRED', 'Which size?');
      case 'signin': // and goes on by itself
        update('AUTH_REQUIRED', 'Please sign in');
        await pause(1500);
        artifact('result', [text('Signed in')]);
        return update('COMPLETED', 'Done');
      case 'files':
        artifact('files', FILES);
        return update('COMPLETED');
      case 'mirror':
        artifact('mirror', message.parts.slice(1));
        return update('COMPLETED');
      case 'fail':
        update('WORKING');
        return update('FAILED', 'This went wrong');
    }
    if (turn > 1) {
      update('WORKING', 'Baking');
      artifact('order', [data({ size: words[0], turn: String(turn) })]);
      return update('COMPLETED', 'Here you are');
    }
    artifact('reply', [text(`You said ${words.join(' ')}`)]);
    return update('COMPLETED', 'Done');
  }

  async cancelTask(taskId, bus) {
    const { words, update } = running.get(taskId) ?? { words: [] };
    for (const word of words) canceled.add(word);
    update?.('CANCELED');
    running.delete(taskId);
  }
}

const app = express();
const http = app.listen(+(process.argv[2] ?? 0), '127.0.0.1');
await new Promise((resolve) => http.once('listening', resolve));
const url = `http://127.0.0.1:${http.address().port}`;
const calls = new Server();
const port = await new Promise((resolve, reject) => calls.bindAsync(
  '127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)),
));

const at = (protocolBinding, url) => ({ protocolBinding, url, tenant: '', protocolVersion: '1.0' });
const card = {
  name: 'Peer in JavaScript',
  description: 'Does what the first word says.',
  version: '1.3.0',
  supportedInterfaces: [at('JSONRPC', `${url}/rpc`), at('HTTP+JSON', url), at('GRPC', `127.0.0.1:${port}`)],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ['text/plain', 'application/json', 'application/octet-stream', 'image/png'],
  defaultOutputModes: ['text/plain', 'application/json'],
  skills: [{ id: 'obey', name: 'Obey', description: 'Does what the first word says.', tags: ['test'], examples: [],
    inputModes: [], outputModes: [], securityRequirements: [] }],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Peer());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
calls.addService(A2AService, grpcService(options));
app.use('/rpc', jsonRpcHandler(options));
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use(restHandler(options));

console.log(url);
process.stdin.on('end', () => process.exit()).resume();
