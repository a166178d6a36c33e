// Names of request members that do not affect how long an answer may be.

/**
 * Names of members that do not limit the length of the answer. Model servers know many other limits, and a higher limit
 * may override the one that the gateway reads. Only if all members of a request are on this list or are limits of its
 * format, the request certainly obeys its limit.
 */
export const neutralMembers: ReadonlySet<string> = new Set([
  // Members of OpenAI's chat completions and completions.
  ...["model", "messages", "prompt", "suffix", "echo", "best_of", "n", "stream", "stream_options", "stop", "seed"],
  ...["audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "metadata", "modalities"],
  ...["parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention"],
  ...["prompt_cache_options", "reasoning_effort", "response_format", "safety_identifier", "service_tier", "store"],
  ...["temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"],
  // Members of OpenAI's responses.
  ...["input", "instructions", "background", "conversation", "context_management", "include", "max_tool_calls"],
  ...["moderation", "previous_response_id", "reasoning", "text", "truncation"],
  // Members of embedding requests.
  ...["encoding_format", "dimensions"],
  // Members of Anthropic's API.
  ...["system", "stop_sequences", "thinking", "top_k", "container", "mcp_servers", "output_config", "output_format"],
  ...["inference_geo", "speed", "cache_control", "anthropic_version", "anthropic_beta", "betas"],
  // Members of vLLM and SGLang.
  ...["min_p", "repetition_penalty", "length_penalty", "stop_token_ids", "include_stop_str_in_output", "ignore_eos"],
  ...["skip_special_tokens", "spaces_between_special_tokens", "truncate_prompt_tokens", "prompt_logprobs"],
  ...["allowed_token_ids", "bad_words", "add_generation_prompt", "continue_final_message", "add_special_tokens"],
  ...["documents", "chat_template_kwargs", "structured_outputs"],
  ...["guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_decoding_backend"],
  ...["guided_whitespace_pattern", "structural_tag", "priority", "return_tokens_as_token_ids"],
  ...["return_token_ids", "cache_salt", "thinking_token_budget", "include_reasoning"],
  ...["enable_thinking", "preserve_thinking", "regex", "ebnf", "json_schema", "no_stop_trim", "stop_regex"],
  ...["separate_reasoning", "stream_reasoning"],
  // Members that llama.cpp knows.
  ...["cache_prompt", "mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent"],
  ...["typical_p", "repeat_penalty", "repeat_last_n", "penalize_nl", "dry_multiplier", "dry_base"],
  ...["dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "xtc_probability", "xtc_threshold"],
  ...["grammar", "grammar_lazy", "grammar_triggers", "samplers", "n_probs", "min_keep", "n_keep", "top_n_sigma"],
  ...["tfs_z", "timings_per_token", "return_progress", "return_tokens", "post_sampling_probs", "reasoning_format"],
  ...["reasoning_budget", "thinking_forced_open", "parse_tool_calls", "response_fields", "t_max_predict_ms"],
  // Members of Ollama and LM Studio.
  ...["keep_alive", "format", "think", "ttl"],
  // Members of OpenRouter, Mistral, Groq, xAI, Perplexity and Qwen.
  ...["provider", "transforms", "usage", "top_a", "plugins", "session_id", "trace", "random_seed", "safe_prompt"],
  ...["prompt_mode", "document_image_limit", "document_page_limit", "search_settings", "citation_options"],
  ...["disable_tool_validation", "search_parameters", "deferred", "search_mode", "search_domain_filter"],
  ...["search_recency_filter", "return_images", "return_related_questions", "enable_search", "search_options"],
  ...["thinking_budget", "incremental_output", "tags"],
]);
