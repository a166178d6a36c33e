// Members of requests that control a model server rather than describe the answer: refused unless an operator allows
// them.

/**
 * Members that control a model server: from where it fetches the memory of prompts (vLLM's and SGLang's
 * disaggregation), which adapters, templates and code it loads, and by which name or slot a request may disturb others.
 */
export const rulingMembers: readonly string[] = [
  ...["kv_transfer_params", "ec_transfer_params", "bootstrap_host", "bootstrap_port", "bootstrap_room"],
  ...["data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank"],
  ...["lora_path", "lora_request", "lora", "adapters", "adapter_id"],
  ...["chat_template", "chat_template_str", "template", "instruction_template", "instruction_template_str"],
  ...["mm_processor_kwargs", "vllm_xargs", "prompt_embeds", "input_embeds"],
  ...["logits_processors", "custom_logit_processor", "custom_params", "session_params", "return_hidden_states"],
  ...["id_slot", "slot_id", "rid", "request_id", "draft_model"],
];

/** The member whose own members become variables of the model's template. */
export const templateArguments = "chat_template_kwargs";
/**
 * Template variables with which a request would replace the template, or the messages that the gateway has checked and
 * counted.
 */
export const rulingArguments: readonly string[] = [
  ...["chat_template", "tokenize", "tokenizer_kwargs", "messages", "conversation", "tools"],
];

export const memberNamePattern = /^[a-z_][a-z0-9_.-]{0,63}$/;
export const maxRefusedMembers = 64;
