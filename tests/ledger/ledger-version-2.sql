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
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',0,'c73c97f767bee7004d2d2a68f7c4b9b9','factual',0,'{"first": 0, "round": 0, "penalty": 0.0, "hope": 1.0, "cost": 0.0, "counts": true, "affinity": 0.9811159709151296}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',1,'38a903c4d94a3bddcbc96fd71d3f7346','first',1,'{"first": 1, "round": 0, "penalty": 0.0, "hope": 0.41056223355544963, "cost": 40.8376065277985, "counts": true, "affinity": 0.9049331202065972}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',2,'7c67f589af1b1fdf3fd4483436e16ab8','first',2,'{"first": 2, "round": 0, "penalty": 0.0, "hope": 0.406620032264938, "cost": 32.25080143207636, "counts": true, "affinity": 0.9682973661336874}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',3,'73283b70101faa9bb536f673e46cdcc3','first',3,'{"first": 3, "round": 0, "penalty": 0.0, "hope": 0.3947614675435346, "cost": 40.384678740408376, "counts": true, "affinity": 1.0}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',4,'75a0f4f7509786495650325e6c2655ff','first',4,'{"first": 4, "round": 0, "penalty": 0.0, "hope": 0.37068555449969703, "cost": 46.90030542946969, "counts": true, "affinity": 0.8524374168657841}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',5,'b8bfeffe5b4c27e1c0df59d346b648e7','polish',5,'{"first": 5, "round": 0, "penalty": 0.0, "hope": 1.0, "cost": 28.379531458306896, "counts": true, "affinity": 0.989688539436855}',1);
INSERT INTO "asks" VALUES('52e2ecae3b998b95116f0e0018fabfc7',6,'9bdd9b0717b55096f1c4e301854cc73f','polish',6,'{"first": 6, "round": 0, "penalty": 0.0, "hope": 1.0, "cost": 37.85921067963577, "counts": true, "affinity": 0.9573759745410853}',1);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',0,'2545e8608b28428281db938b5a21cfac','factual',7,'{"first": 0, "round": 0, "penalty": 0.0, "hope": 1.0, "cost": 0.0, "counts": true, "affinity": 0.9691918390884976}',1);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',1,'c73c97f767bee7004d2d2a68f7c4b9b9','first',8,'{"first": 1, "round": 0, "penalty": 0.0, "hope": 0.410582650990284, "cost": 43.755124828004305, "counts": true, "affinity": 0.9811159709151296}',0);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',2,'3be3b5bf31e774a0fcca8e4d5827305f','first',8,'{"first": 2, "round": 0, "penalty": 0.0, "hope": 0.40643109777500924, "cost": 42.329646934561815, "counts": true, "affinity": 0.9403203558453598}',1);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',3,'96bedbac4ac21de6299ac0186fafdc2e','first',9,'{"first": 3, "round": 0, "penalty": 0.0, "hope": 0.3977311813422689, "cost": 47.12671271541315, "counts": true, "affinity": 0.9426807964305283}',1);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',4,'49d64015f1327daa2bc767e88605ff66','first',10,'{"first": 4, "round": 0, "penalty": 0.0, "hope": 0.36473876870326843, "cost": 46.611657866615936, "counts": true, "affinity": 0.9432856708249966}',1);
INSERT INTO "asks" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0',5,'3c36f8d31d6d6195b2596dd04f92b5ec','first',11,'{"first": 5, "round": 0, "penalty": 0.0, "hope": 0.33275467745171544, "cost": 48.82970483073674, "counts": true, "affinity": 0.9917501366559953}',1);
CREATE TABLE contradictions (
	id INTEGER NOT NULL, 
	query_id TEXT NOT NULL, 
	label TEXT NOT NULL, 
	told_by TEXT NOT NULL, 
	told_at TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(query_id) REFERENCES queries (id)
);
INSERT INTO "contradictions" VALUES(1,'38a903c4d94a3bddcbc96fd71d3f7346','"approved"','host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.280082+00:00');
CREATE TABLE explanations (
	id TEXT NOT NULL, 
	model_id TEXT NOT NULL, 
	factual TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
	outcome TEXT, 
	space_id TEXT, 
	result TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id), 
	FOREIGN KEY(space_id) REFERENCES spaces (id)
);
INSERT INTO "explanations" VALUES('52e2ecae3b998b95116f0e0018fabfc7','loans-v1','{"age": 40, "education": "secondary", "employment_years": 8, "income": 2190, "debt_ratio": 0.012, "credit_score": 722, "loan_amount": 18200, "duration_months": 60, "purpose": "home improvement", "housing": "own", "has_guarantor": false}','{"acex": "0.1.0", "model_id": "loans-v1", "target": "approved", "budget": 7, "count": 1, "seed": 0, "strategy": {"name": "feasible", "tolerance": 0.01, "margin": null}, "beta": 5.0, "plausibility": {"threshold": -1.5, "neighbours": 20, "scale": true}, "n_reference": 1000, "constraint": false, "scores": false, "pool": true, "queries_per_round": 1, "ranges": {}, "versions": {"python": "3.11.7", "numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1", "pandas": "3.1.1"}, "form": {"columns": ["age", "education", "employment_years", "income", "debt_ratio", "credit_score", "loan_amount", "duration_months", "purpose", "housing", "has_guarantor"], "dtypes": ["int64", {"categories": ["primary", "secondary", "bachelor", "master"], "of": "str", "ordered": true}, "int64", "int64", "float64", "int64", "int64", "int64", "str", "str", "bool"], "array_dtype": null}}','2026-11-15T22:58:42.814196+00:00','2026-11-15T22:58:43.030608+00:00','found','5f4bb35e3aa5515c22a6bf40f25e962d','{"asked": 7, "counterfactuals": [4], "steadiness": [], "stopped_by": "budget", "warnings": [], "settings": {"budget": 7, "labels": false}}');
INSERT INTO "explanations" VALUES('a7cbd50deecd4ea6e7f9716bba1c48f0','loans-v1','{"age": 46, "education": "secondary", "employment_years": 3, "income": 2000, "debt_ratio": 0.436, "credit_score": 525, "loan_amount": 15600, "duration_months": 66, "purpose": "home improvement", "housing": "own", "has_guarantor": false}','{"acex": "0.1.0", "model_id": "loans-v1", "target": "approved", "budget": 8, "count": 1, "seed": 0, "strategy": {"name": "feasible", "tolerance": 0.01, "margin": null}, "beta": 5.0, "plausibility": {"threshold": -1.5, "neighbours": 20, "scale": true}, "n_reference": 1000, "constraint": false, "scores": false, "pool": false, "queries_per_round": 1, "ranges": {}, "versions": {"python": "3.11.7", "numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1", "pandas": "3.1.1"}, "form": {"columns": ["age", "education", "employment_years", "income", "debt_ratio", "credit_score", "loan_amount", "duration_months", "purpose", "housing", "has_guarantor"], "dtypes": ["int64", {"categories": ["primary", "secondary", "bachelor", "master"], "of": "str", "ordered": true}, "int64", "int64", "float64", "int64", "int64", "int64", "str", "str", "bool"], "array_dtype": null}}','2026-11-15T22:58:43.084417+00:00',NULL,NULL,'1a006927a5874914e0c7de7209342224',NULL);
CREATE TABLE ledger_versions (
	version INTEGER NOT NULL, 
	acex TEXT NOT NULL, 
	migrated_at TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "ledger_versions" VALUES(2,'0.1.0','2026-11-15T22:58:42.712348+00:00');
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
INSERT INTO "models" VALUES('loans-v1','function','["age", "education", "employment_years", "income", "debt_ratio", "credit_score", "loan_amount", "duration_months", "purpose", "housing", "has_guarantor"]',50,0.1,12,11,'2026-11-15T22:58:42.731320+00:00');
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
INSERT INTO "queries" VALUES('c73c97f767bee7004d2d2a68f7c4b9b9','loans-v1','[40, "secondary", 8, 2190, 0.012, 722, 18200, 60, "home improvement", "own", false]','"rejected"',NULL,'factual','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.831322+00:00','2026-11-15T23:00:42.831322+00:00','2026-11-15T22:58:42.842549+00:00',1);
INSERT INTO "queries" VALUES('38a903c4d94a3bddcbc96fd71d3f7346','loans-v1','[40, "secondary", 9, 2040, 0.392, 455, 19200, 66, "home improvement", "own", false]','"rejected"',NULL,'first','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.875692+00:00','2026-11-15T23:00:42.875692+00:00','2026-11-15T22:58:42.882505+00:00',2);
INSERT INTO "queries" VALUES('7c67f589af1b1fdf3fd4483436e16ab8','loans-v1','[40, "secondary", 8, 1700, 0.023, 722, 3000, 18, "furniture", "own", false]','"rejected"',NULL,'first','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.899760+00:00','2026-11-15T23:00:42.899760+00:00','2026-11-15T22:58:42.903053+00:00',3);
INSERT INTO "queries" VALUES('73283b70101faa9bb536f673e46cdcc3','loans-v1','[40, "secondary", 3, 2580, 0.041, 609, 11300, 48, "home improvement", "own", true]','"rejected"',NULL,'first','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.920097+00:00','2026-11-15T23:00:42.920097+00:00','2026-11-15T22:58:42.926474+00:00',4);
INSERT INTO "queries" VALUES('75a0f4f7509786495650325e6c2655ff','loans-v1','[40, "secondary", 9, 3180, 0.362, 739, 6400, 30, "home improvement", "rent", false]','"approved"',NULL,'first','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.948284+00:00','2026-11-15T23:00:42.948284+00:00','2026-11-15T22:58:42.958544+00:00',5);
INSERT INTO "queries" VALUES('b8bfeffe5b4c27e1c0df59d346b648e7','loans-v1','[40, "secondary", 8, 2685, 0.187, 730, 12300, 45, "home improvement", "rent", false]','"rejected"',NULL,'polish','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.967953+00:00','2026-11-15T23:00:42.967953+00:00','2026-11-15T22:58:42.978571+00:00',6);
INSERT INTO "queries" VALUES('9bdd9b0717b55096f1c4e301854cc73f','loans-v1','[40, "secondary", 9, 2932, 0.27449999999999997, 735, 9350, 38, "home improvement", "rent", false]','"rejected"',NULL,'polish','52e2ecae3b998b95116f0e0018fabfc7',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:42.991571+00:00','2026-11-15T23:00:42.991571+00:00','2026-11-15T22:58:43.002601+00:00',7);
INSERT INTO "queries" VALUES('2545e8608b28428281db938b5a21cfac','loans-v1','[46, "secondary", 3, 2000, 0.436, 525, 15600, 66, "home improvement", "own", false]','"rejected"',NULL,'factual','a7cbd50deecd4ea6e7f9716bba1c48f0',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.108176+00:00','2026-11-15T23:00:43.108176+00:00','2026-11-15T22:58:43.118562+00:00',8);
INSERT INTO "queries" VALUES('3be3b5bf31e774a0fcca8e4d5827305f','loans-v1','[46, "secondary", 5, 1730, 0.295, 494, 1100, 12, "education", "own", false]','"rejected"',NULL,'first','a7cbd50deecd4ea6e7f9716bba1c48f0',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.168573+00:00','2026-11-15T23:00:43.168573+00:00','2026-11-15T22:58:43.176996+00:00',9);
INSERT INTO "queries" VALUES('96bedbac4ac21de6299ac0186fafdc2e','loans-v1','[34, "bachelor", 1, 2120, 0.428, 584, 15300, 72, "car", "own", true]','"rejected"',NULL,'first','a7cbd50deecd4ea6e7f9716bba1c48f0',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.200637+00:00','2026-11-15T23:00:43.200637+00:00','2026-11-15T22:58:43.204558+00:00',10);
INSERT INTO "queries" VALUES('49d64015f1327daa2bc767e88605ff66','loans-v1','[30, "secondary", 1, 1990, 0.075, 536, 13800, 60, "small business", "rent", false]','"rejected"',NULL,'first','a7cbd50deecd4ea6e7f9716bba1c48f0',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.220906+00:00','2026-11-15T23:00:43.220906+00:00','2026-11-15T22:58:43.230553+00:00',11);
INSERT INTO "queries" VALUES('3c36f8d31d6d6195b2596dd04f92b5ec','loans-v1','[47, "secondary", 9, 1820, 0.353, 660, 8200, 36, "home improvement", "own", true]',NULL,NULL,'first','a7cbd50deecd4ea6e7f9716bba1c48f0',1,'host pid 12892 0a1b2c3d.4026531836 61848a6b','2026-11-15T22:58:43.252430+00:00','2026-11-15T22:58:43.262354+00:00',NULL,NULL);
CREATE TABLE spaces (
	id TEXT NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "spaces" VALUES('5f4bb35e3aa5515c22a6bf40f25e962d','{"features": [{"kind": "integer", "name": "age", "frozen": true, "direction": null, "weight": 1.0, "low": 21, "high": 75, "unit": ""}, {"kind": "ordinal", "name": "education", "frozen": false, "direction": null, "weight": 1.0, "categories": ["primary", "secondary", "bachelor", "master"]}, {"kind": "integer", "name": "employment_years", "frozen": false, "direction": null, "weight": 1.0, "low": 0, "high": 52, "unit": ""}, {"kind": "integer", "name": "income", "frozen": false, "direction": null, "weight": 1.0, "low": 840, "high": 7020, "unit": ""}, {"kind": "continuous", "name": "debt_ratio", "frozen": false, "direction": null, "weight": 1.0, "low": 0.001, "high": 0.81, "unit": ""}, {"kind": "integer", "name": "credit_score", "frozen": false, "direction": null, "weight": 1.0, "low": 380, "high": 841, "unit": ""}, {"kind": "integer", "name": "loan_amount", "frozen": false, "direction": null, "weight": 1.0, "low": 1100, "high": 60000, "unit": ""}, {"kind": "integer", "name": "duration_months", "frozen": false, "direction": null, "weight": 1.0, "low": 6, "high": 84, "unit": ""}, {"kind": "nominal", "name": "purpose", "frozen": false, "direction": null, "weight": 1.0, "categories": ["car", "education", "furniture", "home improvement", "small business"]}, {"kind": "nominal", "name": "housing", "frozen": false, "direction": null, "weight": 1.0, "categories": ["own", "rent", "with parents"]}, {"kind": "nominal", "name": "has_guarantor", "frozen": false, "direction": null, "weight": 1.0, "categories": [false, true]}], "columns": ["age", "education", "employment_years", "income", "debt_ratio", "credit_score", "loan_amount", "duration_months", "purpose", "housing", "has_guarantor"], "dtypes": ["int64", {"categories": ["primary", "secondary", "bachelor", "master"], "of": "str", "ordered": true}, "int64", "int64", "float64", "int64", "int64", "int64", "str", "str", "bool"], "array_dtype": null, "deviations": [10.758672734124769, 0.8475134217226303, 7.0539872412700095, 859.623699999018, 0.13781650552818397, 70.86829022207327, 9750.10197074875, 20.902814260285634, 0.617932035097712, 0.5295158165720832, 0.3237885112229895]}');
INSERT INTO "spaces" VALUES('1a006927a5874914e0c7de7209342224','{"features": [{"kind": "integer", "name": "age", "frozen": false, "direction": null, "weight": 1.0, "low": 21, "high": 75, "unit": ""}, {"kind": "ordinal", "name": "education", "frozen": false, "direction": null, "weight": 1.0, "categories": ["primary", "secondary", "bachelor", "master"]}, {"kind": "integer", "name": "employment_years", "frozen": false, "direction": null, "weight": 1.0, "low": 0, "high": 52, "unit": ""}, {"kind": "integer", "name": "income", "frozen": false, "direction": null, "weight": 1.0, "low": 840, "high": 7020, "unit": ""}, {"kind": "continuous", "name": "debt_ratio", "frozen": false, "direction": null, "weight": 1.0, "low": 0.001, "high": 0.81, "unit": ""}, {"kind": "integer", "name": "credit_score", "frozen": false, "direction": null, "weight": 1.0, "low": 380, "high": 841, "unit": ""}, {"kind": "integer", "name": "loan_amount", "frozen": false, "direction": null, "weight": 1.0, "low": 1100, "high": 60000, "unit": ""}, {"kind": "integer", "name": "duration_months", "frozen": false, "direction": null, "weight": 1.0, "low": 6, "high": 84, "unit": ""}, {"kind": "nominal", "name": "purpose", "frozen": false, "direction": null, "weight": 1.0, "categories": ["car", "education", "furniture", "home improvement", "small business"]}, {"kind": "nominal", "name": "housing", "frozen": false, "direction": null, "weight": 1.0, "categories": ["own", "rent", "with parents"]}, {"kind": "nominal", "name": "has_guarantor", "frozen": false, "direction": null, "weight": 1.0, "categories": [false, true]}], "columns": ["age", "education", "employment_years", "income", "debt_ratio", "credit_score", "loan_amount", "duration_months", "purpose", "housing", "has_guarantor"], "dtypes": ["int64", {"categories": ["primary", "secondary", "bachelor", "master"], "of": "str", "ordered": true}, "int64", "int64", "float64", "int64", "int64", "int64", "str", "str", "bool"], "array_dtype": null, "deviations": [10.758672734124769, 0.8475134217226303, 7.0539872412700095, 859.623699999018, 0.13781650552818397, 70.86829022207327, 9750.10197074875, 20.902814260285634, 0.617932035097712, 0.5295158165720832, 0.3237885112229895]}');
CREATE INDEX explanations_of_model ON explanations (model_id);
CREATE UNIQUE INDEX queries_by_sequence ON queries (model_id, sequence);
COMMIT;
