// A remote agent on the JavaScript SDK of A2A 0.3, over its three bindings: sends back the parts it was sent, and a file.
// `node peer.js [PORT]` prints its URL, serves, and ends when its standard input does.
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';

const OWN = { kind: 'file', file: { bytes: Buffer.from('hello123').toString('base64'), mimeType: 'text/plain' } };

class Peer {
  async execute({ taskId, contextId, userMessage }, bus) {
    const status = (state) => ({ state, timestamp: new Date().toISOString() });
    bus.publish({ kind: 'task', id: taskId, contextId, status: status('working'), history: [userMessage], artifacts: [] });
    // What it makes of the bytes itself, whatever the SDK makes of them on their way back.
    const bytes = userMessage.parts.map(({ file }) => file && Buffer.from(file.bytes, 'base64').toString('hex'));
    const parts = [...userMessage.parts, OWN, { kind: 'text', text: bytes.join() }];
    bus.publish({
      kind: 'artifact-update', taskId, contextId, append: false, lastChunk: true, artifact: { artifactId: 'mirror', parts },
    });
    bus.publish({ kind: 'status-update', taskId, contextId, status: status('completed'), final: true });
    bus.finished();
  }

  async cancelTask() {}
}

const app = express();
const http = app.listen(+(process.argv[2] ?? 0), '127.0.0.1');
await new Promise((resolve) => http.once('listening', resolve));
const url = `http://127.0.0.1:${http.address().port}`;
const calls = new Server();
const port = await new Promise((resolve, reject) => calls.bindAsync(
  '127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)),
));

const card = {
  name: 'Peer in JavaScript',
  description: 'Sends back what it is sent, and a file.',
  version: '0.3.14',
  protocolVersion: '0.3.0',
  url: `${url}/rpc`,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [{ transport: 'HTTP+JSON', url: `${url}/rest` }, { transport: 'GRPC', url: `127.0.0.1:${port}` }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain', 'application/octet-stream'],
  defaultOutputModes: ['text/plain', 'application/octet-stream'],
  skills: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Peer());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
calls.addService(A2AService, grpcService(options));
app.use('/rpc', jsonRpcHandler(options));
app.use('/rest', restHandler(options));
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));

console.log(url);
process.stdin.on('end', () => process.exit()).resume();
