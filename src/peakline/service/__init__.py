"""The server: sessions, captures and analyses over gRPC and HTTP, under one set of rules."""
