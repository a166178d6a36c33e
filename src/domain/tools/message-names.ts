// The field names of MCP messages, which clients must not spell in another way.
import { ClearNames } from "../names/clear-names.ts";

export const messageNames = new ClearNames({
  known: [
    ...["jsonrpc", "id", "method", "params", "result", "error", "code", "message"],
    ...[
      "name",
      "uri",
      "cursor",
      "ref",
      "type",
      "title",
      "level",
      "argument",
      "value",
      "context",
      "task",
      "taskId",
      "ttl",
    ],
    ...["progressToken", "progress", "total", "requestId", "reason", "protocolVersion", "clientInfo", "version"],
    ...["action", "role", "model", "stopReason", "roots", "requestState", "notifications", "resourceSubscriptions"],
  ],
  open: [
    ...["arguments", "_meta", "capabilities", "content", "structuredContent", "data", "inputResponses"],
    ...["requestedSchema", "metadata", "icons", "annotations"],
  ],
});
