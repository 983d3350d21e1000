"""The words that packed values are made of, so that each costs two bytes in a journal.

The text belongs to the file format: a journal is read with the vocabulary that it was
written with, so a change of one byte here needs a new schema version. Words that are
not in it cost what they cost; nothing breaks. What is frequent stands at the end.
"""

_CONFIG = (
    b'{"code":"","config":{"max_turns":50,"max_rounds_per_turn":40,"max_input_tokens":128000,'
    b'"completion":"explicit","stop_policy":"interactive","continuation":{"max_prompts":5},'
    b'"limits":{"model_calls":1000,"tool_calls":null,"tokens":null,"cost_usd":null,'
    b'"time_s":null,"working_s":null}},"edges":[["repair","compaction"],'
    b'["compaction","agent_turn"],["agent_turn","stop_decision"],["stop_decision","repair"]],'
    b'"custom":[],"keys":["OPENAI_API_KEY"],"workspace":{"path":"/","source":null}}'
)
_RESULT = (
    b'{"run_id":"","status":"failed","reason":{"kind":"model_error","message":"","details":{}},'
    b'"turn_count":1,"output_text":"","completion_verified":true,"usage":{"model_calls":1,'
    b'"tool_calls":1,"input_tokens":1,"output_tokens":1,"cached_tokens":0,"cost_usd":0.0,'
    b'"working_s":0.0},"deliverables":[],"wall_s":0.'
    b'"status":"limit""status":"stalled""status":"cancelled""awaiting_input""strict_automation"'
    b'"status":"done","reason":{"kind":"completed","message":"answered""unverified"'
)
_RARE = (
    b'{"type":"custom_event","name":"","data":{}}{"type":"executor_lost","executor":"","losses":1}'
    b'{"type":"run_parked","turn":1}{"type":"run_resumed","turn":1}{"type":"repaired",'
    b'"kind":"dangling_tool_call","call_id":"","tool_name":"","turn":1}'
    b'{"type":"context_pressure","turn":1,"tokens":1,"max_input_tokens":128000}'
    b'["harness.repairs","increment",1]["harness.work_items","append",'
    b'{"to":"stop_decision","signal":{"kind":"CustomSignal","name":"","data":{}}}'
)
_RUN = (
    b'["harness.started","set",true]{"type":"run_started","task_preview":"",'
    b'"stop_policy":"interactive","max_turns":50}'
    b'{"type":"run_completed","status":"done","reason":"completed","message":""}'
    b'{"type":"continuation_prompt","turn":1,"count":1,"max":5}["harness.nudges","set",0]'
)
_HOPS = (
    b'{"to":"repair","signal":{"kind":"RepairTrigger","resumed":false}}'
    b'{"to":"compaction","signal":{"kind":"RepairComplete","repairs_made":0}}'
    b'{"to":"agent_turn","signal":{"kind":"CompactionComplete","repairs_made":0,"tokens":1,'
    b'"plan_updated":false,"tokens_freed":0,"compaction_needed":false}}'
    b'{"to":"stop_decision","signal":{"kind":"TurnComplete","ending":"completed","text":"",'
    b'"progressed":true,"limit":null,"error":null}}'
)
_TURN = (
    b'{"type":"stop_decided","turn":1,"decision":"continue","reason":"stop"}'
    b'{"type":"turn_started","turn":1,"max_turns":50}["harness.turn_count","increment",1]'
    b'{"type":"turn_completed","turn":1,"rounds":1,"ending":"completed","token_estimate":1}'
    b'["harness.turn","set",null]'
)
_ROUND = (
    b'[[["harness.open_calls","set",[{"call_id":"call_","tool_name":"run_command",'
    b'"idempotent":false,"turn":1}]],'
    b'["harness.usage","increment",{"model_calls":1,"tool_calls":1,"input_tokens":1,'
    b'"output_tokens":1,"cached_tokens":0,"cost_usd":0.0,"working_s":0.0}],'
    b'["harness.turn","set",{"rounds":1,"progressed":true}],'
    b'["harness.request_tokens","increment",1],["harness.open_calls","set",[]]],'
    b'[{"type":"round_completed","turn":1,"round":1,"input_tokens":1,"output_tokens":1,'
    b'"cached_tokens":0,"cost_usd":0.0,"tool_calls":1}]]'
)

VOCABULARY = _CONFIG + _RESULT + _RARE + _RUN + _HOPS + _TURN + _ROUND


# The same for messages, since version 2: what stands around their texts.
MESSAGE_VOCABULARY = (
    b'{"role":"system","content":"You are {"role":"user","content":"'
    b"Call work_complete with a summary when the task is done."
    b'Traceback (most recent call last):\\n  File \\"", line , in \\n    Error: '
    b"No such file or directory\\nThe outcome of this call is unknown."
    b"the that and with for this from have will are not you can should which \\n\\n"
    b"    return self. import from class def __init__(self) -> None:\\n        if "
    b'{\\"command\\":\\"{\\"query\\":\\"{\\"path\\":\\"\\",\\"content\\":\\"\\"}"}}]}'
    b'{"id":"toolu_{"id":"chatcmpl-tool-"},"type":"function","function":{"name":"work_complete",'
    b'"arguments":"{\\"summary\\":\\"'
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function",'
    b'"function":{"name":"run_command","arguments":"{\\"'
    b'{"role":"assistant","content":"","tool_calls":[{"id":"call_'
    b'{"role":"tool","tool_call_id":"call_","content":"'
)
