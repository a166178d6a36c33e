// The headers by which another program continues a trace.
/** Fields for the receiver of a request (W3C Trace Context), made or checked by the gateway. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}
