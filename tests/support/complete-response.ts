// A response that leaves nothing out of what the document of Open Responses requires.

export const completeUsage = {
  ...{ input_tokens: 30, output_tokens: 9, total_tokens: 39 },
  ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
};

const part = { type: "output_text", text: "Hello", annotations: [], logprobs: [] };

export const completeResponse = {
  ...{ id: "resp_up", object: "response", created_at: 1_700_000_001, completed_at: 1_700_000_003 },
  ...{ status: "completed", incomplete_details: null, model: "upstream-model", previous_response_id: null },
  ...{ instructions: null, error: null, tools: [], tool_choice: "auto", truncation: "disabled" },
  output: [{ id: "msg_up", type: "message", role: "assistant", status: "completed", content: [part] }],
  ...{ parallel_tool_calls: true, text: { format: { type: "text" } }, reasoning: { effort: null, summary: null } },
  ...{ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0 },
  ...{ usage: completeUsage, max_output_tokens: null, max_tool_calls: null, store: false, background: false },
  ...{ service_tier: "default", metadata: {}, safety_identifier: null, prompt_cache_key: null },
};
