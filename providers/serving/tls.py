"""TLS: the settings of every HTTPS server of the engine."""

import ssl


def server_context() -> ssl.SSLContext:
    """A server's context without a certificate: TLS 1.2 or later, HTTP/1.1 only, no renegotiation.

    Load a certificate with `load_cert_chain`, also while the context is used: further handshakes have the new one. Without
    a certificate every handshake fails.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # An API server chooses HTTP/2 if it is offered.
    context.set_alpn_protocols(["http/1.1"])
    return context
