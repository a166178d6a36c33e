// The headers by which a trace goes on at another program.
/** Fields for whom a request is passed on to (W3C Trace Context); values of ours, or checked. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}
