// The headers by which another program continues a trace.
/** Header fields for the receiver of a request (W3C Trace Context). The gateway has made or checked their values. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}
