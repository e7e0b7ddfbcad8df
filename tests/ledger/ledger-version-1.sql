BEGIN TRANSACTION;
CREATE TABLE asks (
	explanation_id TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	query_id TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	seen BIGINT NOT NULL, 
	note TEXT NOT NULL, 
	paid INTEGER NOT NULL, 
	PRIMARY KEY (explanation_id, position), 
	FOREIGN KEY(explanation_id) REFERENCES explanations (id), 
	FOREIGN KEY(query_id) REFERENCES queries (id)
);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',0,'a686d93422f801c2d174a9c764072e83','factual',0,'{"first": 0, "round": 0, "penalty": 0.0, "hope": 1.0, "cost": 0.0, "counts": true}',1);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',1,'385f8e09105f537907e8fefd29da2849','first',1,'{"first": 1, "round": 0, "penalty": 0.0, "hope": 0.41012578896258883, "cost": 7.6824206716213315, "counts": true}',1);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',2,'62c01aeb4d35ce9fc2beef0ab1bea4c1','first',2,'{"first": 2, "round": 0, "penalty": 0.0, "hope": 0.4047379347522667, "cost": 8.091908625361889, "counts": true}',1);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',3,'27c07d7c1472e807597d8865adfee522','first',3,'{"first": 3, "round": 0, "penalty": 0.0, "hope": 0.40179282453043025, "cost": 10.611186552901167, "counts": true}',1);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',4,'0178f2d3f1b08bb520702ade6a8be666','first',4,'{"first": 4, "round": 0, "penalty": 0.0, "hope": 0.3230075736314067, "cost": 7.366999241193352, "counts": true}',1);
INSERT INTO "asks" VALUES('883cb90820cf755dde234b81a8995411',5,'6ead44b6c968699efddbc71727cd7d04','first',5,'{"first": 5, "round": 0, "penalty": 0.0, "hope": 0.3196974448211407, "cost": 8.551748221093632, "counts": true}',1);
CREATE TABLE contradictions (
	id INTEGER NOT NULL, 
	query_id TEXT NOT NULL, 
	label TEXT NOT NULL, 
	told_by TEXT NOT NULL, 
	told_at TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(query_id) REFERENCES queries (id)
);
CREATE TABLE explanations (
	id TEXT NOT NULL, 
	model_id TEXT NOT NULL, 
	factual TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
	outcome TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id)
);
INSERT INTO "explanations" VALUES('883cb90820cf755dde234b81a8995411','bank-1','{"income": 1500, "debt": 0.6, "job": "cook"}','{"acex": "0.1.0", "model_id": "bank-1", "target": null, "budget": 6, "count": 1, "seed": 0, "strategy": {"name": "feasible", "tolerance": 0.01, "margin": null}, "beta": 5.0, "plausibility": {"threshold": -1.5, "neighbours": 20, "scale": true}, "n_reference": 60, "constraint": false, "scores": false, "pool": true, "queries_per_round": 1, "form": {"columns": ["income", "debt", "job"], "dtypes": ["int64", "float64", "str"], "array_dtype": null}}','2026-11-15T15:13:11.096490+00:00','2026-11-15T15:13:11.330056+00:00','found');
CREATE TABLE ledger_versions (
	version INTEGER NOT NULL, 
	acex TEXT NOT NULL, 
	migrated_at TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "ledger_versions" VALUES(1,'0.1.0','2026-11-15T15:13:11.073723+00:00');
CREATE TABLE models (
	id TEXT NOT NULL, 
	description TEXT NOT NULL, 
	features TEXT, 
	row_budget BIGINT, 
	price_per_row FLOAT, 
	n_charged BIGINT NOT NULL, 
	last_sequence BIGINT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "models" VALUES('bank-1','function','["income", "debt", "job"]',NULL,NULL,6,6,'2026-11-15T15:13:11.087174+00:00');
CREATE TABLE queries (
	id TEXT NOT NULL, 
	model_id TEXT NOT NULL, 
	"row" TEXT NOT NULL, 
	label TEXT, 
	scores TEXT, 
	purpose TEXT NOT NULL, 
	explanation_id TEXT, 
	attempts INTEGER NOT NULL, 
	claimed_by TEXT, 
	claimed_at TEXT, 
	leased_until TEXT, 
	settled_at TEXT, 
	sequence BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id), 
	FOREIGN KEY(explanation_id) REFERENCES explanations (id)
);
INSERT INTO "queries" VALUES('a686d93422f801c2d174a9c764072e83','bank-1','[1500, 0.6, "cook"]','"bad"',NULL,'factual','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.119980+00:00','2026-11-15T15:15:11.119980+00:00','2026-11-15T15:13:11.130498+00:00',1);
INSERT INTO "queries" VALUES('385f8e09105f537907e8fefd29da2849','bank-1','[2772, 0.572, "cook"]','"bad"',NULL,'first','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.158242+00:00','2026-11-15T15:15:11.158242+00:00','2026-11-15T15:13:11.166491+00:00',2);
INSERT INTO "queries" VALUES('62c01aeb4d35ce9fc2beef0ab1bea4c1','bank-1','[1400, 0.949, "cook"]','"bad"',NULL,'first','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.188248+00:00','2026-11-15T15:15:11.188248+00:00','2026-11-15T15:13:11.197739+00:00',3);
INSERT INTO "queries" VALUES('27c07d7c1472e807597d8865adfee522','bank-1','[1114, 0.199, "cook"]','"bad"',NULL,'first','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.224054+00:00','2026-11-15T15:15:11.224054+00:00','2026-11-15T15:13:11.238877+00:00',4);
INSERT INTO "queries" VALUES('0178f2d3f1b08bb520702ade6a8be666','bank-1','[528, 0.5, "cook"]','"bad"',NULL,'first','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.264475+00:00','2026-11-15T15:15:11.264475+00:00','2026-11-15T15:13:11.274587+00:00',5);
INSERT INTO "queries" VALUES('6ead44b6c968699efddbc71727cd7d04','bank-1','[2183, 0.365, "cook"]','"good"',NULL,'first','883cb90820cf755dde234b81a8995411',1,'desk pid 1 - 0','2026-11-15T15:13:11.299909+00:00','2026-11-15T15:15:11.299909+00:00','2026-11-15T15:13:11.310746+00:00',6);
CREATE INDEX explanations_of_model ON explanations (model_id);
CREATE UNIQUE INDEX queries_by_sequence ON queries (model_id, sequence);
COMMIT;