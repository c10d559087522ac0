"""A remote agent of the matrix on the Python SDK of A2A 1.0, over its three bindings: does what ../matrix/README.md says.

python peer.py [PORT] prints its URL, serves, and ends when its standard input does.
"""

import asyncio
import sys

from a2a.helpers.proto_helpers import new_data_part, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Role
from agent import main

canceled = set()

NOTE = Part(text="a text", media_type="text/markdown")
NOTE.metadata.update({"kind": "note"})
FILES = [
    NOTE,
    Part(raw=b"\x00\x01\x02\xff", filename="blob.bin", media_type="application/octet-stream"),
    Part(url="https://example.com/a.png", filename="a.png", media_type="image/png"),
    new_data_part({"nested": {"list": [1, 2.5, "three", None, True]}}),
]


class Peer(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context, events):
        words = context.get_user_input().split() or [""]
        if words[0] == "direct":
            answer = Message(
                message_id=f"answer-{context.message.message_id}",
                role=Role.ROLE_AGENT,
                parts=[new_text_part("You said " + " ".join(words)), new_data_part({"direct": True})],
                context_id=context.context_id,
            )
            return await events.enqueue_event(answer)
        before = context.current_task.history if context.current_task else []
        turn = len({message.message_id for message in [*before, context.message] if message.role == Role.ROLE_USER})
        if not context.current_task:
            await events.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(events, context.task_id, context.context_id)
        await self.obey(task, words, turn, context.message)

    async def obey(self, task, words, turn, message):
        def say(what):
            return task.new_agent_message([new_text_part(what)])

        def chunk(text, name, first, last):
            return task.add_artifact([new_text_part(text)], artifact_id=name, name=name, append=not first, last_chunk=last)

        match words[0]:
            case "stream":
                await task.start_work(say("Streaming"))
                for text in ("one ", "two ", "three"):
                    await chunk(text, "story", text == "one ", text == "three")
                await task.complete(say("Streamed"))
            case "drip":  # a chunk every so often, for tests that cut in
                await task.start_work(say("Dripping"))
                for n in range(int(words[1])):
                    await chunk(f"{n} ", "drip", n == 0, False)
                    await asyncio.sleep(float(words[2]))
                await task.complete(say("Dripped"))
            case "slow":
                await task.start_work(say("Taking my time"))
                await asyncio.sleep(float(words[1]))
                await task.add_artifact([new_text_part("At last")], name="result")
                await task.complete(say("Done"))
            case "hold":
                await task.start_work(say("Holding"))
                await asyncio.sleep(600)
                await task.failed(say("Nobody canceled this task"))
            case "canceled":
                await task.add_artifact([new_text_part("yes" if words[1] in canceled else "no")], name="canceled")
                await task.complete()
            case "order":
                await task.requires_input(say("Which size?"))
            case "signin":  # and goes on by itself
                await task.requires_auth(say("Please sign in"))
                await asyncio.sleep(1.5)
                await task.add_artifact([new_text_part("Signed in")], name="result")
                await task.complete(say("Done"))
            case "files":
                await task.add_artifact(FILES, artifact_id="files")
                await task.complete()
            case "mirror":
                await task.add_artifact(message.parts[1:], artifact_id="mirror")
                await task.complete()
            case "fail":
                await task.start_work()
                await task.failed(say("This went wrong"))
            case _ if turn > 1:
                await task.start_work(say("Baking"))
                await task.add_artifact([new_data_part({"size": words[0], "turn": str(turn)})], name="order")
                await task.complete(say("Here you are"))
            case _:
                await task.add_artifact([new_text_part("You said " + " ".join(words))], name="reply")
                await task.complete(say("Done"))

    async def cancel(self, context, events):
        canceled.update(context.current_task.history[0].parts[0].text.split())
        await TaskUpdater(events, context.task_id, context.context_id).cancel()


if __name__ == "__main__":
    asyncio.run(main(Peer(), port=int(sys.argv[1]) if sys.argv[1:] else 0))
