// What an SDK handed out, in one plain form for both versions of the protocol, so that a cell is written once.

const withoutEmpty = (fields) => Object.fromEntries(
  Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''
    && !(typeof value === 'object' && !Buffer.isBuffer(value) && Object.keys(value).length === 0)),
);

/** A part of either version. The media type of a text is left out: 0.3 has no place for it. */
export function partOf(part) {
  const { metadata, file } = part;
  if (file) {
    const content = file.bytes === undefined ? { url: file.uri } : { raw: Buffer.from(file.bytes, 'base64') };
    return withoutEmpty({ ...content, filename: file.name, mediaType: file.mimeType, metadata });
  }
  if (part.text !== undefined) return { text: part.text, ...withoutEmpty({ metadata }) };
  if (part.data !== undefined) return { data: part.data, ...withoutEmpty({ metadata }) };
  const content = part.raw === undefined ? { url: part.url } : { raw: Buffer.from(part.raw, 'base64') };
  return withoutEmpty({ ...content, filename: part.filename, mediaType: part.mediaType, metadata });
}

const stateOf = ({ state }) => state.replace('TASK_STATE_', '').toUpperCase().replace('-', '_');
/** The text of a status; undefined where it has no message, or one that an SDK made up and left empty. */
const saidIn = ({ message }) => message?.parts.map(({ text }) => text ?? '').join('') || undefined;

export function messageOf({ messageId, role, parts, taskId, contextId }) {
  return { id: messageId, role: role.replace('ROLE_', '').toLowerCase(), parts: parts.map(partOf), taskId, contextId };
}

const artifactOf = ({ artifactId, name, parts }) => ({ id: artifactId, name: name || undefined, parts: parts.map(partOf) });

export function taskOf({ id, contextId, status, artifacts, history }) {
  return {
    id,
    contextId,
    state: stateOf(status),
    said: saidIn(status),
    artifacts: (artifacts ?? []).map(artifactOf),
    history: (history ?? []).map(messageOf),
  };
}

const statusOf = ({ taskId, contextId, status, final }) =>
  ({ taskId, contextId, state: stateOf(status), said: saidIn(status), final });

const chunkOf = ({ taskId, contextId, artifact, append, lastChunk }) =>
  ({ taskId, contextId, append: !!append, last: !!lastChunk, ...artifactOf(artifact) });

/** A kind and the plain form of what it holds, from a stream response of 1.0 or a result of 0.3. */
export function eventOf(event) {
  const [kind, value] = event.kind ? [event.kind, event] : Object.entries(event)[0];
  switch (kind) {
    case 'task': return { kind, value: taskOf(value) };
    case 'statusUpdate': case 'status-update': return { kind: 'status', value: statusOf(value) };
    case 'artifactUpdate': case 'artifact-update': return { kind: 'artifact', value: chunkOf(value) };
    case 'message': return { kind, value: messageOf(value) };
    default: throw new Error(`an event of the kind ${kind}`);
  }
}
