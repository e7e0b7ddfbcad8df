"""A language model as a classifier: which words of a short record make a rubric grader answer "fail"?

The grader is a stub on this machine that speaks the form of chat completions; put a real address, model and key in its
place. Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% The grader: an endpoint that reads a record, applies a rubric, and charges by the token.
import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pandas as pd

import acex

POINTS = {"hello": 1, "hey you": -2, "thank you": 3, "whatever": -3, "see the manual": 0, "here is how": 3}


class Grader(BaseHTTPRequestHandler):
    """Adds up points for words; 3 are enough to pass."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        record = json.loads(re.search(r"\{.*\}", body["messages"][-1]["content"])[0])
        points = sum(POINTS.get(value, 0) for value in record.values()) - (record["sentences"] > 8)
        content = json.dumps({"label": "pass" if points >= 3 else "fail"})
        message = {"role": "assistant", "content": content, "refusal": None}
        usage = {"prompt_tokens": len(json.dumps(body)) // 4, "completion_tokens": 7}
        answer = {
            "object": "chat.completion",
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
        reply = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args):
        """Logs nothing: the amount spent is enough."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Grader)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"

# %% Replies of a help desk as short records, and one that failed.
rng = np.random.default_rng(0)
replies = pd.DataFrame(
    {
        "greeting": rng.choice(["none", "hello", "hey you"], 120),
        "answer": rng.choice(["see the manual", "here is how", "whatever"], 120),
        "closing": rng.choice(["none", "thank you"], 120),
        "sentences": rng.integers(1, 13, 120),
    }
)
reply = pd.Series({"greeting": "hey you", "answer": "see the manual", "closing": "none", "sentences": 10})

# %% The grader as acex sees it: a prompt with a placeholder for the record, the possible labels, prices and a cap.
os.environ["GRADER_KEY"] = "Bearer 0123456789"  # normally set outside the program
grader = acex.HttpModel(
    url,
    protocol="chat",
    request={
        "model": "grader-1",
        "temperature": 0,
        "max_completion_tokens": 20,
        "messages": [
            {"role": "system", "content": "You grade replies of a help desk by the rubric: friendly, helpful, short."},
            {"role": "user", "content": "Does this reply pass? $record"},
        ],
    },
    classes=["pass", "fail"],
    headers_from_env={"Authorization": "GRADER_KEY"},
    token_prices=(0.15, 0.60),  # per million tokens of input, of output
    money=0.01,
)

# %% What would have made it pass? The model also reads the number of sentences, but only words may change here.
e = acex.explain(grader, reply, replies, target="pass", freeze=["sentences"], count=2, budget=25)
print(e, "\n")
print(e.counterfactuals.to_string(index=False), "\n")
print(*e.sentences(), sep="\n")

# %% What it cost, and a report to share.
print(f"\n{e.n_queries} replies graded for {grader.spent:.6f}.")
e.to_html("acex-example-grader.html")
print("Saved acex-example-grader.html.")
server.shutdown()
