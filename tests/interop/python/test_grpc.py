"""What a client of gRPC finds that knows nothing of A2A: reflection, health, and errors with their details."""

import grpc
import pytest
from conftest import KEY, URL
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

SERVICE = "lf.a2a.v1.A2AService"
METADATA = [("a2a-version", "1.0"), ("authorization", f"Bearer {KEY}"), ("agent-name", "echo")]


@pytest.fixture
def channel():
    with grpc.insecure_channel(URL.removeprefix("http://")) as channel:
        yield channel


@pytest.fixture
def service(channel):
    """The service as reflection describes it."""
    return DescriptorPool(ProtoReflectionDescriptorDatabase(channel)).FindServiceByName(SERVICE)


def call(channel, service, method, params, metadata=METADATA):
    """A call made of the reflected descriptors alone, as grpcurl does it."""
    described = service.methods_by_name[method]
    make = channel.unary_stream if described.server_streaming else channel.unary_unary
    stub = make(
        f"/{SERVICE}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(described.output_type).FromString,
    )
    return stub(json_format.ParseDict(params, GetMessageClass(described.input_type)()), metadata=metadata, timeout=10)


def test_reflection_lists_the_services(channel):
    services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert {SERVICE, "grpc.health.v1.Health"} <= set(services)


def test_all_operations_are_described(service):
    assert sorted(service.methods_by_name) == [
        "CancelTask",
        "CreateTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
        "GetTask",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "ListTasks",
        "SendMessage",
        "SendStreamingMessage",
        "SubscribeToTask",
    ]


def test_a_reflecting_client_can_send(channel, service):
    message = {"messageId": "reflected", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    answer = call(channel, service, "SendMessage", {"message": message})
    assert json_format.MessageToDict(answer)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    frames = list(call(channel, service, "SendStreamingMessage", {"message": {**message, "messageId": "streamed"}}))
    assert len(frames) > 1


def test_our_proto_is_the_specifications(service):
    """Every message has the fields and numbers of the official SDK's own proto."""
    from a2a.types import a2a_pb2

    official = a2a_pb2.DESCRIPTOR.message_types_by_name
    ours = service.file.message_types_by_name
    assert set(ours) == set(official)
    for name, message in official.items():
        shape = lambda fields: {(f.name, f.number, f.type, f.is_repeated) for f in fields}  # noqa: E731
        assert shape(ours[name].fields) == shape(message.fields), name


def test_health_is_served(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for name in ["", SERVICE]:
        answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_errors_have_details(channel, service):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, service, "SendMessage", {"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}})
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    details = rpc_status.from_call(raised.value).details
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert details[0].Unpack(info) and details[1].Unpack(bad)
    assert info.reason == "INVALID_PARAMS"
    assert [violation.field for violation in bad.field_violations] == ["message.messageId"]


def test_a_deadline_is_kept(channel, service):
    described = service.methods_by_name["SendMessage"]
    message = {"messageId": "late", "role": "ROLE_USER", "parts": [{"text": "slow 3s"}]}
    request = json_format.ParseDict({"message": message, "tenant": "script"}, GetMessageClass(described.input_type)())
    send = channel.unary_unary(f"/{SERVICE}/SendMessage", request_serializer=lambda m: m.SerializeToString())
    with pytest.raises(grpc.RpcError) as raised:
        send(request, metadata=METADATA[:2], timeout=0.3)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
