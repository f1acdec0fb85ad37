"""A plain gRPC client of the two services: raw stubs over the messages of the schema."""

from typing import Any

import grpc
from tests.waiting import HANG_S

from peakline import schema

_OPTIONS = (("grpc.max_receive_message_length", 2**31 - 1), ("grpc.use_local_subchannel_pool", 1))


class Client:
    """Calls by the names of the methods; keyword arguments are the request's fields."""

    def __init__(self, address: str, credentials: Any = None, options: Any = ()) -> None:
        options = (*_OPTIONS, *options)
        self.channel = (
            grpc.insecure_channel(address, options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )

    def stub(self, name: str) -> Any:
        """The method of either service, as a gRPC callable."""
        for service in ("tensorflow.ProfileAnalysis", "tensorflow.ProfilerService"):
            method = schema.service(service).methods_by_name.get(name)
            if method is not None:
                return self.channel.unary_unary(
                    f"/{service}/{name}",
                    request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=schema.message(method.output_type.full_name).FromString,
                )
        raise KeyError(name)

    def request(self, name: str, **fields: Any) -> Any:
        for service in ("tensorflow.ProfileAnalysis", "tensorflow.ProfilerService"):
            method = schema.service(service).methods_by_name.get(name)
            if method is not None:
                return schema.message(method.input_type.full_name)(**fields)
        raise KeyError(name)

    def call(
        self, name: str, *, timeout: float | None = HANG_S, metadata: Any = None, **fields: Any
    ) -> Any:
        request = self.request(name, **fields)
        return self.stub(name)(request, timeout=timeout, metadata=metadata)

    def start(
        self, name: str, *, timeout: float | None = HANG_S, metadata: Any = None, **fields: Any
    ) -> Any:
        """The call's future."""
        request = self.request(name, **fields)
        return self.stub(name).future(request, timeout=timeout, metadata=metadata)

    def close(self) -> None:
        self.channel.close()
