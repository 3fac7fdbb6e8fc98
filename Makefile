# make demo: set up and see it work.    make test: set up and run every check.    make docs: set up and build the site.
PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
BIN = $(VENV)/bin
PIP = $(BIN)/pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint docs clean

demo: $(VENV)/demo.stamp
	$(BIN)/thetafield demo --out out/demo $(ARGS)

test: $(VENV)/test.stamp lint
	$(BIN)/pytest -n 2 --dist worksteal $(ARGS)

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check

# The site: open site/index.html. The notice that is switched off is about MkDocs 2, which is not used.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict $(ARGS)

clean:
	rm -rf $(VENV) out site

# torch comes first and alone, so that its build is the one chosen by TORCH.
$(VENV)/torch.stamp: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "thetafield needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@echo "Installing torch ($(TORCH)) ..."
	$(PIP) $(TORCH)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/torch.stamp pyproject.toml
	@echo "Installing thetafield ..."
	$(PIP) --editable '.[report]'
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp
	@echo "Installing what the tests need ..."
	$(PIP) --editable '.[report,test,dev,docs]'
	@touch $@

$(VENV)/docs.stamp: $(VENV)/demo.stamp
	@echo "Installing what the site needs ..."
	$(PIP) --editable '.[report,docs]'
	@touch $@
